//! Directives: `name=value`, on the command line (`-O`) and in scripts (`-f`).

use super::Config;
use std::io::{self, ErrorKind};
use std::path::Path;
use weft_model::units::parse_size;

impl Config {
    /// Applies `name=value[,name=value...]`; case of names does not matter.
    pub(super) fn direct_all(&mut self, list: &str) -> io::Result<()> {
        for text in list.split(',').filter(|text| !text.trim().is_empty()) {
            let (name, value) = text.split_once('=').ok_or_else(|| bad(text))?;
            self.direct(&name.trim().to_ascii_lowercase(), value.trim())
                .ok_or_else(|| bad(text))?;
        }
        Ok(())
    }

    /// None where the name or value is wrong.
    fn direct(&mut self, name: &str, value: &str) -> Option<()> {
        let size = || parse_size(value).ok();
        let yes = || match value {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        };
        match name {
            "api" => self.api = value.into(),
            "refnum" => self.reference = value.parse().ok()?,
            "testfile" => self.file = value.into(),
            "repetitions" => self.iterations = value.parse().ok()?,
            "numtasks" => self.ranks = Some(value.parse().ok()?),
            "intertestdelay" => self.delay = value.parse().ok()?,
            "deadlineforstonewalling" => self.stonewall = value.parse().ok()?,
            "stonewallingwearout" => self.wear_out = yes()?,
            "stonewallingwearoutiterations" => self.written = Some(value.parse().ok()?),
            "maxtimeduration" => self.max_minutes = value.parse().ok()?,
            "outlierthreshold" => self.outlier = value.parse().ok()?,
            "taskpernodeoffset" => self.node_offset = value.parse().ok()?,
            "reordertasksrandomseed" => self.random_seed = value.parse().ok()?,
            "settimestampsignature" => self.signature = value.parse().ok()?,
            "segmentcount" => self.segments = size()?,
            "blocksize" => self.block = size()?,
            "transfersize" => self.transfer = size()?,
            "memorypernode" => self.memory = Some(value.parse().ok()?),
            "verbose" => self.verbose = value.parse().ok()?,
            _ => *self.switch(name)? = yes()?,
        }
        Some(())
    }

    /// The switch of that name.
    fn switch(&mut self, name: &str) -> Option<&mut bool> {
        Some(match name {
            "readfile" => &mut self.read,
            "writefile" => &mut self.write,
            "checkread" => &mut self.check_read,
            "checkwrite" => &mut self.check_write,
            "fileperproc" => &mut self.file_per_rank,
            "reordertasks" | "reordertasksconstant" => &mut self.reorder,
            "reordertasksrandom" => &mut self.reorder_random,
            "randomoffset" => &mut self.random,
            "keepfile" => &mut self.keep,
            "keepfilewitherror" => &mut self.keep_wrong,
            "multifile" => &mut self.multi_file,
            "quitonerror" => &mut self.quit,
            "uniquedir" => &mut self.unique_dir,
            "useexistingtestfile" => &mut self.existing,
            "intratestbarriers" => &mut self.barriers,
            "fsync" => &mut self.fsync,
            "fsyncperwrite" => &mut self.fsync_each,
            "preallocate" => &mut self.preallocate,
            "useo_direct" => &mut self.direct,
            _ => return None,
        })
    }

    /// The tests of the script that `-f` names, each beginning with the settings of the one before;
    /// only itself without a script.
    ///
    /// # Errors
    /// Those of the file, and `InvalidInput` for a line that is no directive.
    pub fn tests(&self) -> io::Result<Vec<Config>> {
        match &self.script {
            None => Ok(vec![self.clone()]),
            Some(path) => self.script(path, &std::fs::read_to_string(path).map_err(named(path))?),
        }
    }

    fn script(&self, path: &Path, text: &str) -> io::Result<Vec<Config>> {
        let (mut tests, mut inside, mut open) = (Vec::new(), false, false);
        let mut now = Config { script: None, ..self.clone() };
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            match line.to_ascii_lowercase().as_str() {
                "" => {}
                "ior start" => inside = true,
                "ior stop" => break,
                _ if !inside => {}
                "run" => {
                    tests.push(now.clone());
                    open = false;
                }
                _ => {
                    now.direct_all(line).map_err(named(path))?;
                    open = true;
                }
            }
        }
        if open || tests.is_empty() {
            tests.push(now);
        }
        Ok(tests)
    }
}

fn named(path: &Path) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("script {}: {error}", path.display()))
}

fn bad(text: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{text:?} is no directive of IOR known here"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_and_scripts() {
        let config =
            Config::parse(["-O", "stoneWallingWearOut=1,checkRead=1,BLOCKSIZE=4m"]).unwrap();
        assert!(config.wear_out && config.check_read && config.block == 4 << 20);
        assert!(Config::parse(["-O", "nonsense=1"]).is_err());
        let text = "IOR START\n api=POSIX # comment\n blockSize=2m, writeFile=1\nRUN\nfsync=1\nRUN\nIOR STOP";
        let tests = config.script(Path::new("s"), text).unwrap();
        assert_eq!(tests.len(), 2);
        assert!(tests[0].write && !tests[0].fsync && tests[1].fsync && tests[1].block == 2 << 20);
    }
}
