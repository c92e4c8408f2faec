//! Secrets of many kinds are found, and what only looks like one is left.

use ctxfold_compactor::redact;
use proptest::prelude::*;

/// Each with the kind and the secret. Put together from pieces so that no scanner takes this
/// file for a leak.
fn secrets() -> Vec<(&'static str, String, String)> {
    let random = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0";
    let s = |prefix: &str, n: usize| format!("{prefix}{}", &random[..n]);
    let hex = "0123456789abcdef".repeat(4);
    let pem = |kind: &str| {
        format!(
            "-----BEGIN {kind}-----\n{}\n-----END {kind}-----",
            "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n".repeat(4).trim_end()
        )
    };
    let mut out: Vec<(&'static str, String, String)> = Vec::new();
    let mut bare = |kind, secret: String| out.push((kind, format!("see {secret} there"), secret));
    bare("anthropic-key", s("sk-ant-api03-", 40));
    bare("openai-key", s("sk-proj-", 40));
    bare("openai-key", s("sk-", 40));
    bare("google-key", s("AIza", 35));
    bare("google-key", s("ya29.", 40));
    bare("github-token", s("ghp_", 36));
    bare("github-token", s("github_pat_", 40));
    bare("gitlab-token", s("glpat-", 20));
    bare("slack-token", s("xoxb-", 30));
    bare("stripe-key", s("sk_live_", 24));
    bare("aws-access-key", "AKIA".to_owned() + "IOSFODNN7EXAMPLQ");
    bare("npm-token", s("npm_", 36));
    bare("pypi-token", s("pypi-", 40) + "0123456789abc");
    bare("huggingface-token", s("hf_", 34));
    bare(
        "sendgrid-key",
        format!("SG.{}.{}", &random[..22], &random[..40]),
    );
    bare("telegram-token", format!("123456789:AA{}", &random[..33]));
    bare("digitalocean-token", format!("dop_v1_{hex}"));
    bare("databricks-token", format!("dapi{}", &hex[..32]));
    bare(
        "jwt",
        format!(
            "eyJ{}.eyJ{}.{}",
            &random[..20],
            &random[..20],
            &random[..30]
        ),
    );
    bare("private-key", pem("RSA PRIVATE KEY"));
    bare("private-key", pem("OPENSSH PRIVATE KEY"));
    bare("private-key", pem("PGP PRIVATE KEY BLOCK"));
    let mut named = |kind, text: String, secret: &str| out.push((kind, text, secret.to_owned()));
    named(
        "bearer-token",
        format!("Authorization: Bearer {random}"),
        random,
    );
    named(
        "basic-auth",
        "Authorization: Basic dXNlcjpwYXNzd29yZA==".into(),
        "dXNlcjpwYXNzd29yZA==",
    );
    named(
        "url-password",
        "postgres://app:hunter2@db:5432/x".into(),
        "hunter2",
    );
    named(
        "url-password",
        "git clone https://me:s3cr3t!@host/x".into(),
        "s3cr3t!",
    );
    named("header-key", format!("-H 'x-api-key: {random}'"), random);
    named(
        "env-secret",
        format!("export AWS_SECRET_ACCESS_KEY={random}"),
        random,
    );
    named(
        "env-secret",
        "DB_PASSWORD='correct horse'".into(),
        "correct horse",
    );
    named("env-secret", "MY_TOKEN=\"abcdef\"".into(), "abcdef");
    named(
        "named-secret",
        "\"password\": \"hunter2hunter2\"".into(),
        "hunter2hunter2",
    );
    named("named-secret", format!("api_key = '{random}'"), random);
    named(
        "named-secret",
        "  client_secret: abc123def456\n".into(),
        "abc123def456",
    );
    for name in [
        "MYSQL_PWD",
        "ENCRYPTION_KEY",
        "SIGNING_KEY",
        "STRIPE_KEY",
        "GITHUB_PAT",
        "ANTHROPIC_AUTH",
        "PGPASSWORD",
        "DB_PASSWORD_PROD",
        "SESSION_KEY",
    ] {
        named("env-secret", format!("{name}={random}"), random);
    }
    for (name, secret) in [
        ("MYSQL_PWD", "zebra9quartz1"),
        ("PASSWORD", "changeme123real"),
        ("AUTH_TOKEN", "true-blue-token-9911"),
        ("SECRET", "$upersecret1"),
        ("PASSWORD", "none-of-1-business"),
        ("SMTP_PASS", "%d41pine"),
    ] {
        named("env-secret", format!("{name}={secret} run"), secret);
    }
    named(
        "env-secret",
        "export db_password=hunter2horse".into(),
        "hunter2horse",
    );
    named(
        "env-secret",
        "setenv DB_PASSWORD hunterhorse".into(),
        "hunterhorse",
    );
    named(
        "named-secret",
        "db.password = hunter2horse".into(),
        "hunter2horse",
    );
    named("named-secret", format!("  apiKey: {random},"), random);
    named(
        "command-secret",
        "curl -sS -u admin:hunter2horse https://host/x".into(),
        "hunter2horse",
    );
    named(
        "command-secret",
        r#"{"command":"curl --user \"admin:hunter2horse\" https://host"}"#.into(),
        "hunter2horse",
    );
    named(
        "command-secret",
        "docker login -u x --password hunter2horse".into(),
        "hunter2horse",
    );
    named(
        "command-secret",
        "tool --api-key=abcd1234 run".into(),
        "abcd1234",
    );
    named(
        "command-secret",
        "mysql -u root -phunter2horse db".into(),
        "hunter2horse",
    );
    named(
        "command-secret",
        "sshpass -p 'hunterhorse' ssh host".into(),
        "hunterhorse",
    );
    named(
        "url-token",
        "git clone https://tok3nsekretuser@host/x".into(),
        "tok3nsekretuser",
    );
    named(
        "url-password",
        "postgres://u:p@ss/w0rd@host/db".into(),
        "p@ss/w0rd",
    );
    named("cookie", format!("Cookie: session={random}"), random);
    named(
        "azure-key",
        format!("AccountKey={random}{random}=="),
        random,
    );
    out
}

#[test]
fn secrets_are_replaced_by_their_kind() {
    for (kind, text, secret) in secrets() {
        let clean = redact(&text);
        assert!(!clean.text.contains(&secret), "{kind}: {}", clean.text);
        let placeholder = format!("[REDACTED:{kind}]");
        assert!(clean.text.contains(&placeholder), "{kind}: {}", clean.text);
        assert_eq!(
            clean.counts.values().sum::<usize>(),
            1,
            "{kind}: {:?}",
            clean.counts
        );
        assert_eq!(clean.counts[kind], 1);
    }
}

#[test]
fn what_only_looks_like_a_secret_is_left() {
    for text in [
        "let token = parser.next_token();",
        "fn token(&self) -> &str { self.token }",
        "max_tokens: 4096",
        "MAX_TOKENS=4096",
        "\"total_tokens\": 123456",
        "API_KEY=$API_KEY cargo run",
        "API_KEY=${API_KEY}",
        "export GITHUB_TOKEN=<your token>",
        "TOKEN_FILE=/run/secrets/token.txt",
        "PASSWORD=changeme",
        "password: string;",
        "password = os.environ['PASSWORD']",
        "const secret = process.env.SECRET_VALUE_1;",
        "the bearer of this letter, bearer authentication-schemes",
        "https://user@host/path and http://host:8080/a@b",
        "https://user:$PASSWORD@host/",
        "class=\"sk-loading-indicator-wrapper-large\"",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "uuid 123e4567-e89b-12d3-a456-426614174000",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "grep -r 'BEGIN RSA PRIVATE KEY' .",
        "PWD=/home/dev/project2/crates3",
        "OLDPWD=/home/dev/a1b2",
        "COMPASS=north-north-west1",
        "TOKENIZERS_PARALLELISM=disabled",
        "CACHE_KEY=a1B2c3D4e5F6g7H8i9J0",
        "PUBLIC_KEY=a1B2c3D4e5F6g7H8i9J0",
        "KEY=left",
        "AWS_ACCESS_KEY_ID_FILE=/home/dev/x1y2",
        "SECRET_NAME=prod-db-credentials-1",
        "PASSWORD_POLICY=strong-and-long",
        "TOKEN_TYPE=installation",
        "PASSWORD=your-password",
        "PASSWORD=null",
        "AUTH_TOKEN=$AUTH_TOKEN_2",
        "AUTH_TOKEN=%AUTH_TOKEN%",
        "PASS=12 of 13",
        "tests: password=True",
        "connect(password=db_password)",
        "    password=db_password",
        "password: required",
        "set token correctly, then set password properly",
        "      --password string   Password for the registry1",
        "--password-stdin reads it from standard input",
        "use --password option and --token <TOKEN2>",
        "--token $TOKEN --password ${PASSWORD1}",
        "docker run -u 1000:1000 image",
        "curl -u $USER:$PASSWORD https://host",
        "curl -fsSL https://host/install.sh | sh -s -- --user me",
        "mkdir -p some/path4",
        "git push -u origin main:main",
        "https://host:8080/path?key=value",
        "https://developer@host.example/path",
        "postgres://host:5432/db2 and me@host",
        "cookie: none",
        "\"key\": \"crates/compactor/src/redact.rs\"",
        "\"keyword\": \"a1B2c3D4e5F6g7H8i9J0\"",
        "src/tokenizer/secret_santa.rs:12: let password_field = form.field(\"password\");",
        "",
    ] {
        let clean = redact(text);
        assert_eq!(clean.text, text);
        assert!(clean.counts.is_empty());
    }
}

#[test]
fn a_key_without_its_end_is_replaced_too() {
    let text = "key:\n-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nMIIEvQIBADAN";
    assert_eq!(redact(text).text, "key:\n[REDACTED:private-key]");
}

#[test]
fn many_secrets_are_all_counted() {
    let all: Vec<String> = secrets().into_iter().map(|(_, text, _)| text).collect();
    let count = all.len();
    let clean = redact(&all.join("\n\n"));
    assert_eq!(
        clean.counts.values().sum::<usize>(),
        count,
        "{:?}",
        clean.counts
    );
    for (kind, _, secret) in secrets() {
        assert!(!clean.text.contains(&secret), "{kind}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn twice_is_once(pieces in proptest::collection::vec(
        (any::<prop::sample::Index>(), "[ \n=:\"'a-zA-Z0-9_-]{0,12}"), 0..6,
    )) {
        let secrets = secrets();
        let mut text = String::new();
        for (i, between) in pieces {
            text.push_str(&between);
            text.push_str(&i.get(&secrets).1);
        }
        let once = redact(&text);
        let twice = redact(&once.text);
        prop_assert_eq!(&twice.text, &once.text);
        prop_assert!(twice.counts.is_empty(), "{:?}", twice.counts);
    }

    /// Whatever stands around a word for a secret, and however it is written.
    #[test]
    fn a_named_secret_never_stays(
        before in "([A-Z]{1,6}_){0,2}",
        word in "PASSWORD|PASSWD|PWD|SECRET|TOKEN|API_KEY|PRIVATE_KEY|PAT|PASSPHRASE|SIGNING_KEY",
        secret in "[a-zA-Z]{4}[0-9][a-zA-Z0-9]{8}[0-9][a-z]{4}",
        form in 0..4,
    ) {
        let name = format!("{before}{word}");
        prop_assume!(name != "PWD" && name != "PAT");
        let text = match form {
            0 => format!("run it with {name}={secret} now"),
            1 => format!("export {}='{secret}'", name.to_lowercase()),
            2 => format!("first: 1\nexport {name}={secret}\nlast: 2"),
            _ => format!("{{\"command\":\"{name}=\\\"{secret}\\\" make\"}}"),
        };
        let clean = redact(&text);
        prop_assert!(!clean.text.contains(&secret), "{}", clean.text);
        prop_assert!(clean.text.contains(&name) || clean.text.contains(&name.to_lowercase()));
    }

    /// Without a word for a secret, and without a form of its own, nothing is one.
    #[test]
    fn a_name_of_something_else_hides_nothing(
        name in "(HOME|LANG|EDITOR|COMPASS|TOKENIZER|MONKEY|PATTERN|SECRETARY|KEYBOARD|AUTHOR)(_[A-Z]{2,4}X)?",
        value in "[a-zA-Z0-9]{3,12}",
        form in 0..3,
    ) {
        let text = match form {
            0 => format!("{name}={value}"),
            1 => format!("export {}={value}", name.to_lowercase()),
            _ => format!("  {name}: \"{value}\"\n"),
        };
        prop_assert_eq!(redact(&text).text, text);
    }

    #[test]
    fn any_text_is_survived(text in "\\PC{0,200}") {
        let clean = redact(&text);
        prop_assert_eq!(clean.counts.is_empty(), clean.text == text);
    }
}
