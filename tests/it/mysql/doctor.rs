//! `soloist doctor` on a MariaDB that is well, and on those that are refused.

use super::*;
use crate::sql::doctor::{says, says_well};

#[tokio::test(flavor = "multi_thread")]
async fn doctor_says_what_is_well() {
    let url = MariaServer::shared().database();
    soloist::stores::connect(&url, &options()).await.expect("it opens");
    let checks = ["store", "persistence", "replication", "connections"];
    let findings = says_well(&url, &checks);
    let product = if MAKE.is_mysql() { "MySQL 9" } else { "MariaDB 1" };
    assert!(findings.iter().any(|one| one.to_string().contains(product)), "{findings:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_names_what_is_refused_and_the_remedy() {
    let server = MariaServer::start(&["log-bin=log", "sync-binlog=1", "binlog-format=MIXED"]);
    let url = server.database();
    soloist::stores::connect(&url, &options()).await.expect("it opens");
    for (set, back, remedy) in [
        ("innodb_flush_log_at_trx_commit = 2", "1", "set innodb_flush_log_at_trx_commit = 1"),
        ("sync_binlog = 0", "1", "set sync_binlog = 1"),
        ("binlog_format = 'STATEMENT'", "'MIXED'", "binlog_format = ROW or MIXED"),
        ("max_allowed_packet = 1048576", "16777216", "64M"),
        ("read_only = 1", "0", "name the address of the primary"),
    ] {
        server.sql(&format!("SET GLOBAL {set}"));
        says(&url, "bad", remedy);
        let (name, _) = set.split_once(" = ").expect("a value");
        server.sql(&format!("SET GLOBAL {name} = {back}"));
    }
    let taken = server.database();
    server.sql(&format!("CREATE TABLE {}.orders (n BIGINT)", name_of(&taken)));
    says(&taken, "bad", "Soloist alone");
    says(&server.url_of("nowhere_at_all"), "bad", "GRANT SELECT");
    says(&url.replace("sesame", "mellon"), "bad", "check user and password");
    server.sql(&format!("ALTER TABLE {}.rings ENGINE = MyISAM", name_of(&url)));
    says(&url, "bad", "ALTER TABLE rings ENGINE = InnoDB");
    let still = MariaServer::start(&["sysdate-is-now"]);
    says(&still.database(), "bad", "sysdate-is-now");
}
