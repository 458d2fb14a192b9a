//! Certificates of an authority of one's own, made by openssl.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::service;

/// Makes `cert.pem` and `key.pem` for 127.0.0.1 in `dir`, signed by the authority `ca.pem`.
pub(crate) fn sign(dir: &Path) {
    let script = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj '/CN=Our own' -keyout ca-key.pem -out ca.pem &&
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=node-a -keyout key.pem -out node.csr &&
printf 'subjectAltName=IP:127.0.0.1\\nbasicConstraints=CA:FALSE\\n' > extensions &&
openssl x509 -req -in node.csr -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 2 -extfile extensions -out cert.pem &&
chmod 600 key.pem";
    let made = Command::new("sh").args(["-c", script]).current_dir(dir).output();
    let made = made.expect("a shell");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// The same in a directory that belongs to `user`, under which a server runs when we are root.
pub(crate) fn signed_for(user: &str) -> TempDir {
    let directory = TempDir::new().expect("a directory");
    sign(directory.path());
    if let Some((uid, gid)) = service::user(user) {
        for path in ["", "ca.pem", "cert.pem", "key.pem"] {
            let path = directory.path().join(path);
            std::os::unix::fs::chown(path, Some(uid), Some(gid)).expect("given away");
        }
    }
    directory
}
