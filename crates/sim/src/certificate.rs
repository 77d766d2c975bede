//! A certificate for 127.0.0.1 and the authority that signs it.

use std::path::Path;

use crate::service::{program, run};

const SETTINGS: &str = "
[req]
distinguished_name = name
prompt = no
[name]
CN = Test
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = IP:127.0.0.1, DNS:localhost
";

/// Writes `ca.pem`, `server.pem` and `server.key` into a folder.
pub(crate) fn write(folder: &Path) {
    std::fs::write(folder.join("openssl.conf"), SETTINGS).expect("a written file");
    let certify = |name: &str, common_name: &str, by: &[&str]| {
        let mut openssl = program("openssl");
        openssl.current_dir(folder).args(["req", "-x509", "-config", "openssl.conf", "-nodes"]);
        openssl.args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "30"]);
        openssl.args(["-subj", common_name, "-extensions", name]).args(by);
        openssl.args(["-keyout", &format!("{name}.key"), "-out", &format!("{name}.pem")]);
        run(&mut openssl);
    };
    certify("ca", "/CN=Test authority", &[]);
    certify("server", "/CN=localhost", &["-CA", "ca.pem", "-CAkey", "ca.key"]);
}
