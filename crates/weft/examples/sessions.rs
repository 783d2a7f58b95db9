//! Many clients in one process: each opens a session, makes a file, writes and reads it. Says so, waits for a
//! line, and lets all leave. The suite `sessions` watches the servers meanwhile, or kills it.

use anyhow::{Context, ensure};
use std::sync::Arc;
use std::time::Instant;
use weft_client::{Client, ClientConfig, CreateArgs, Ctx, OpenFlags};
use weft_rpc::ClusterKey;

/// Clients started at a time: a server greets only so many at once.
const AT_A_TIME: usize = 16;

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [manager, key, count] = &args[..] else {
        anyhow::bail!("usage: sessions MANAGER KEYFILE COUNT");
    };
    let count: usize = count.parse()?;
    let key = ClusterKey::parse(&std::fs::read_to_string(key)?)?;
    let start = Instant::now();
    let come = |number: usize| {
        let config = ClientConfig {
            managers: vec![manager.clone()],
            key: Some(key.clone()),
            host: "sessions".into(),
            mountpoint: format!("/{number}"),
            ..ClientConfig::default()
        };
        let client = Client::mount(config, None, Arc::new(weft_rpc::SystemEnv::new()))?;
        work(&client, number).with_context(|| format!("client {number}"))?;
        anyhow::Ok(client)
    };
    let clients = in_parallel(count, &come)?;
    println!("{count} clients have come and worked in {:.1} s", start.elapsed().as_secs_f64());
    std::io::stdin().read_line(&mut String::new())?;
    in_parallel(count, &|number| Ok(clients[number].unmount()?))?;
    Ok(())
}

/// Makes a file, writes and reads it.
fn work(client: &Client, number: usize) -> anyhow::Result<()> {
    let (ctx, data) = (Ctx::root(), vec![number as u8; 10_000]);
    let flags = OpenFlags::READ | OpenFlags::WRITE;
    let args = CreateArgs { mode: 0o644, flags, ..CreateArgs::default() };
    let name = format!("client.{}.{number}", std::process::id());
    let file = client.create(&ctx, client.root(), name.as_bytes(), &args)?.file;
    client.write(&ctx, &file, 0, &data)?;
    let mut read = vec![0; data.len() + 1];
    let length = client.read(&ctx, &file, 0, &mut read)?;
    ensure!(read[..length] == data, "what was read is not what was written");
    Ok(client.close(&ctx, &file, None)?)
}

fn in_parallel<T: Send>(
    count: usize,
    work: &(dyn Fn(usize) -> anyhow::Result<T> + Sync),
) -> anyhow::Result<Vec<T>> {
    let mut done = Vec::with_capacity(count);
    for first in (0..count).step_by(AT_A_TIME) {
        let last = (first + AT_A_TIME).min(count);
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (first..last).map(|number| scope.spawn(move || work(number))).collect();
            for thread in threads {
                match thread.join() {
                    Ok(result) => done.push(result?),
                    Err(_) => anyhow::bail!("a client has panicked"),
                }
            }
            Ok(())
        })?;
    }
    Ok(done)
}
