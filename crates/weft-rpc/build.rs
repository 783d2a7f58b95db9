//! Compiles the message definitions, without a system `protoc`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = ["common.proto", "manager.proto", "mds.proto", "oss.proto"];
    for file in files {
        println!("cargo:rerun-if-changed=proto/{file}");
    }
    let descriptors = protox::compile(files, ["proto"])?;
    prost_build::Config::new().compile_fds(descriptors)?;
    Ok(())
}
