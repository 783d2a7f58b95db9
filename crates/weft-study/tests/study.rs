//! A study from its points to its report, on a testbed whose figures are made up but whose shape is
//! known.

use std::collections::BTreeMap;
use std::path::Path;
use weft_study::compare::Comparison;
use weft_study::engine::{self, Plan, Testbed};
use weft_study::point::{Param, Point, Work};
use weft_study::progress::Progress;
use weft_study::report;
use weft_study::results::{Figure, Measured, Results, Size};
use weft_study::studies::{self, Study};

/// Delivers 80 percent of the limit, or stops.
struct Bench {
    measured: usize,
    stop_after: usize,
    fail_at: Option<usize>,
    factor: f64,
}

impl Bench {
    fn new() -> Bench {
        Bench { measured: 0, stop_after: usize::MAX, fail_at: None, factor: 0.8 }
    }
}

impl Testbed for Bench {
    fn settings(&self) -> BTreeMap<String, String> {
        [("Clients".to_string(), "made up".to_string())].into()
    }

    fn measure(&mut self, point: &Point) -> Result<Measured, String> {
        self.measured += 1;
        if self.fail_at == Some(self.measured) {
            return Err("the disk is <full>".into());
        }
        let limit = point.cluster.limit("MiB/s").unwrap_or(100.0) * self.factor;
        let bulk = |name: &str, value| Figure {
            min: value * 0.9,
            max: value * 1.1,
            values: vec![value * 0.9, value, value * 1.1],
            ..Figure::once(name, "MiB/s", value)
        };
        let figures = match &point.work {
            Work::Recovery { .. } => {
                vec![Figure::once("data", "s", 0.4), Figure::once("metadata", "s", 0.2)]
            }
            Work::Bench(commands) if commands[0][0] == "mdtest" => {
                vec![Figure::once("File creation", "ops/s", 5000.0 * self.factor)]
            }
            Work::Bench(_) => vec![bulk("write", limit), bulk("read", limit * 1.1)],
        };
        Ok(Measured { figures, commands: vec!["weft bench <x>".into()], notes: Vec::new() })
    }

    fn interrupted(&self) -> bool {
        self.measured >= self.stop_after
    }
}

fn run(study: &Study, file: &Path, bed: &mut Bench) -> Result<Results, String> {
    let plan = Plan { study, size: Size::Quick, repeats: 1, parts: &[] };
    engine::run(plan, file, bed, &mut Progress::new())
}

#[test]
fn a_stopped_study_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("panfs.json");
    let study = studies::find("panfs").unwrap();
    let total = (study.points)(Size::Quick).len();

    let mut first = Bench { stop_after: 3, ..Bench::new() };
    assert_eq!(run(study, &file, &mut first).unwrap().points.len(), 3);
    let mut second = Bench { fail_at: Some(2), ..Bench::new() };
    let results = run(study, &file, &mut second).unwrap();
    assert_eq!((second.measured, results.points.len()), (total - 3, total));
    assert_eq!(results.points.iter().filter(|outcome| outcome.failed.is_some()).count(), 1);
    // What failed is tried again, and nothing else; what the study does not ask any more goes.
    let mut changed = results.clone();
    changed.points[0].point.work = Work::bench("ior -b 1m");
    changed.points.push(results.points[0].clone());
    changed.save(&file).unwrap();
    let mut third = Bench::new();
    let results = run(study, &file, &mut third).unwrap();
    assert_eq!((third.measured, results.points.len()), (1, total));
    assert!(results.points.iter().all(|outcome| outcome.failed.is_none()));
    // The file has them all, in the order of the study.
    let there = Results::load(&file).unwrap();
    let wanted = (study.points)(Size::Quick);
    assert!(there.points.iter().map(|outcome| &outcome.point).eq(&wanted));
    assert_eq!(there.points[0].measured.figures[0].median, 320.0);
}

#[test]
fn results_of_another_kind_are_not_mixed() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.json");
    run(studies::find("dne").unwrap(), &file, &mut Bench::new()).unwrap();
    let error = run(studies::find("panfs").unwrap(), &file, &mut Bench::new()).unwrap_err();
    assert!(error.contains("another study") && error.contains("x.json"), "{error}");
    std::fs::write(&file, "{\"format\": 1, \"study\"").unwrap();
    let error = Results::load(&file).unwrap_err();
    assert!(error.contains("x.json") && error.contains("not the results of a study"), "{error}");
    let error =
        run(studies::find("dne").unwrap(), &dir.path().join("no/x.json"), &mut Bench::new());
    assert!(error.unwrap_err().contains("cannot write file="));
}

#[test]
fn a_part_can_be_run_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("r.json");
    let study = studies::find("sonexion").unwrap();
    let parts = ["recovery".to_string()];
    let plan = |parts| Plan { study, size: Size::Quick, repeats: 1, parts };
    let results =
        engine::run(plan(&parts), &file, &mut Bench::new(), &mut Progress::new()).unwrap();
    assert!(results.points.iter().all(|outcome| outcome.point.part == "recovery"));
    assert!(report::write(study, &results).unwrap().html.contains("this run did not get to it"));
    let unknown = ["x".to_string()];
    let error = engine::run(plan(&unknown), &file, &mut Bench::new(), &mut Progress::new());
    assert!(error.unwrap_err().contains("no part \"x\"; there are matrix, survey, recovery"));
}

/// Whether every tag that is opened is closed, in order.
fn well_formed(text: &str) -> bool {
    let mut open: Vec<&str> = Vec::new();
    for tag in text.split('<').skip(1) {
        let Some((tag, _)) = tag.split_once('>') else { return false };
        let name = tag.split_whitespace().next().unwrap_or("").trim_end_matches('/');
        if let Some(closed) = tag.strip_prefix('/') {
            if open.pop() != Some(closed) {
                return false;
            }
        } else if !(tag.ends_with('/') || ["!DOCTYPE", "meta", "br", "?xml"].contains(&name)) {
            open.push(name);
        }
    }
    open.is_empty()
}

#[test]
fn every_study_has_a_report_with_pictures() {
    for study in studies::ALL {
        let dir = tempfile::tempdir().unwrap();
        let mut bed = Bench { fail_at: Some(1), ..Bench::new() };
        let results = run(study, &dir.path().join("r.json"), &mut bed).unwrap();
        let report = report::write(study, &results).unwrap();
        assert!(report.pictures.len() >= 2, "{}", study.name);
        let mut names: Vec<&str> = report.pictures.iter().map(|p| p.name.as_str()).collect();
        for picture in &report.pictures {
            assert!(
                picture.svg.starts_with("<svg") && well_formed(&picture.svg),
                "{}",
                picture.name
            );
            assert!(report.html.contains(&picture.svg));
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), report.pictures.len(), "{}: names of pictures", study.name);
        assert!(well_formed(&report.html), "{}", study.name);
        for wanted in ["Not run, and why", "the disk is &lt;full&gt;", "Published figures", "80 %"]
        {
            assert!(report.html.contains(wanted), "{}: {wanted}", study.name);
        }
        for outside in ["<script", "href=\"http", "src=", "@import", "url("] {
            assert!(!report.html.contains(outside), "{}: {outside}", study.name);
        }
    }
}

#[test]
fn pictures_show_ideal_limit_and_what_was_published() {
    let dir = tempfile::tempdir().unwrap();
    let study = studies::find("panfs").unwrap();
    let results = run(study, &dir.path().join("r.json"), &mut Bench::new()).unwrap();
    let report = report::write(study, &results).unwrap();
    let picture = |name: &str| {
        let found = report.pictures.iter().find(|picture| picture.name == name);
        &found.unwrap_or_else(|| panic!("no {name}")).svg
    };
    let lines = picture("panfs-throughput-clients-write");
    for wanted in ["ideal scaling", "limit of the", "write, MiB/s", "clients (mounts)", "threads 4"]
    {
        assert!(lines.contains(wanted), "{wanted}");
    }
    let share = picture("panfs-throughput-clients-write-share");
    assert!(share.contains("published: PanFS AS12"), "published");
}

#[test]
fn two_runs_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    let study = studies::find("orangefs").unwrap();
    let one = run(study, &dir.path().join("a.json"), &mut Bench::new()).unwrap();
    let mut half = Bench { factor: 0.4, fail_at: Some(1), ..Bench::new() };
    let other = run(study, &dir.path().join("b.json"), &mut half).unwrap();
    let names = || ["a".to_string(), "b".to_string()];
    let compared = Comparison::of(names(), &one, &other).unwrap();
    assert!(compared.rows.iter().all(|row| (row.ratio().unwrap() - 0.5).abs() < 1e-9));
    assert_eq!(compared.rows.len(), 2 * (one.points.len() - 1));
    assert_eq!(compared.unmatched, 1);
    assert!(compared.means().iter().all(|(_, _, mean, _)| (mean - 0.5).abs() < 1e-9));
    assert!(compared.text().contains("B/A 0.50"));
    assert!(well_formed(&compared.html()));
    let strange = run(studies::find("dne").unwrap(), &dir.path().join("c.json"), &mut Bench::new());
    assert!(Comparison::of(names(), &one, &strange.unwrap()).is_err());
    let mut nothing = one.clone();
    nothing.points.iter_mut().for_each(|outcome| {
        outcome.point.params.insert("other".into(), Param::Number(1.0));
    });
    assert!(Comparison::of(names(), &one, &nothing).is_err());
}

#[test]
fn points_are_repeated_and_a_stop_keeps_none_of_a_part_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("panfs.json");
    let study = studies::find("panfs").unwrap();
    let plan = |repeats| Plan { study, size: Size::Quick, repeats, parts: &[] };
    let mut bed = Bench { stop_after: 8, ..Bench::new() };
    let results = engine::run(plan(3), &file, &mut bed, &mut Progress::new()).unwrap();
    assert_eq!((bed.measured, results.points.len()), (8, 2));
    assert_eq!(results.points[0].measured.figures[0].values.len(), 9);
    let again = engine::run(plan(2), &file, &mut Bench::new(), &mut Progress::new());
    assert!(again.unwrap_err().contains("repetitions"));
    let mut bed = Bench::new();
    let results = engine::run(plan(3), &file, &mut bed, &mut Progress::new()).unwrap();
    assert_eq!(bed.measured, 3 * (results.points.len() - 2));
}
