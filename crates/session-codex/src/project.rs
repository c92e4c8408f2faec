//! The projection: what the client shows of a thread without reading its rollout. It is brought
//! forward only on request, in one transaction, in a schema that is known.

use std::path::PathBuf;
use std::time::Duration;

use rusqlite::{
    Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params,
};

use crate::write::Layout;
use crate::{Error, ErrorKind};

const PATIENCE: Duration = Duration::from_secs(2);
/// The migrations of the history store that were measured, from 0.148.0 to 0.171.0.
const KNOWN_MIGRATIONS: [i64; 5] = [4, 6, 7, 8, 9];

/// How the checksums of the migrations begin, from the first one on. They were the same in every
/// version that has the migration; the client refuses a store in which one is another.
const CHECKSUMS: [&str; 9] = [
    "2ad9a4ab17df511fb73f03337133de94",
    "ae61dbc1a6422530aa93914dbcac363a",
    "a51da2a11df7760d8f8cab221e82b36c",
    "65f33b171bd3aafe9d24728b2ca6a5c7",
    "2fdad8e361dc1f828afacf10bd2eb1f5",
    "02ed82d375adb58b5c0c09e0154f3331",
    "9334adb4cda792116a47b69a19e3840a",
    "94635cd58535adb1679f4ad07a9d1423",
    "4def92ea0f557ec6333bfe80798c89eb",
];

/// The place of a thread's projection.
#[derive(Debug, Clone)]
pub(crate) struct Projection {
    /// The history store, where there is one.
    pub(crate) store: Option<PathBuf>,
    /// The rollout id, by which rows are keyed.
    pub(crate) key: String,
}

/// Cursor of a projection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) offset: i64,
    pub(crate) ordinal: i64,
}

impl Projection {
    /// Opens the store for writing; never makes one.
    pub(crate) fn open(&self) -> Result<Connection, Error> {
        let Some(path) = &self.store else {
            return Err(Error::new(
                ErrorKind::UnknownSchema,
                "this home has no history store of Codex",
            ));
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = || {
            let store = Connection::open_with_flags(path, flags)?;
            store.busy_timeout(PATIENCE)?;
            Ok(store)
        };
        open().map_err(|e| Error::store(path, "failed to open the store", e))
    }

    /// Begins the transaction, after checking schema and cursor.
    pub(crate) fn begin<'c>(
        &self,
        store: &'c mut Connection,
        len: u64,
        next_ordinal: u64,
    ) -> Result<Transaction<'c>, Error> {
        let wrap = |e| self.wrap(e);
        let transaction = store
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(wrap)?;
        match schema(&transaction).map_err(wrap)? {
            Schema::Known => {}
            Schema::Unknown(why) => {
                return Err(self.error(ErrorKind::UnknownSchema, why));
            }
        }
        let expected = Cursor {
            offset: len.cast_signed(),
            ordinal: next_ordinal.cast_signed(),
        };
        match cursor(&transaction, &self.key).map_err(wrap)? {
            Some(cursor) if cursor == expected => Ok(transaction),
            Some(cursor) if cursor.offset < expected.offset => Err(self.error(
                ErrorKind::ProjectionBehind,
                format!("the projection has read {} of {len} bytes", cursor.offset),
            )),
            Some(cursor) => Err(self.error(
                ErrorKind::ProjectionBroken,
                format!(
                    "the projection stands at byte {} and ordinal {}, the rollout at {len} and {next_ordinal}",
                    cursor.offset, cursor.ordinal
                ),
            )),
            None => Err(self.error(
                ErrorKind::ProjectionBehind,
                "the store has no projection of this thread".to_owned(),
            )),
        }
    }

    /// The three writes: the turn, its marker, the cursor.
    pub(crate) fn insert(
        &self,
        transaction: &Transaction<'_>,
        layout: &Layout,
        start: u64,
        end: u64,
    ) -> Result<(), Error> {
        let insert = || -> rusqlite::Result<()> {
            let seconds = layout.at_ms.div_euclid(1000);
            transaction.execute(
                "INSERT INTO thread_turns (thread_id, turn_id, rollout_ordinal, status, started_at,
                     completed_at, duration_ms, rollout_byte_offset, rollout_end_ordinal,
                     rollout_end_byte_offset)
                 VALUES (?1, ?2, ?3, 'completed', ?4, ?4, 0, ?5, ?6, ?7)",
                params![
                    self.key,
                    layout.turn,
                    layout.first_ordinal.cast_signed(),
                    seconds,
                    start.cast_signed(),
                    layout.last_ordinal.cast_signed(),
                    end.cast_signed()
                ],
            )?;
            let json = format!(
                "{{\"type\":\"contextCompaction\",\"id\":\"{}\"}}",
                layout.item
            );
            transaction.execute(
                "INSERT INTO thread_items (thread_id, turn_id, item_id, rollout_ordinal,
                     created_at_ms, item_json, item_type, updated_at_ordinal)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'contextCompaction', ?4)",
                params![
                    self.key,
                    layout.turn,
                    layout.item,
                    layout.marker_ordinal.cast_signed(),
                    layout.at_ms,
                    json
                ],
            )?;
            let columns = columns(transaction, "thread_items")?;
            if columns.iter().any(|c| c == "started_at_ms") {
                transaction.execute(
                    "UPDATE thread_items SET started_at_ms = ?1, completed_at_ms = ?1
                     WHERE thread_id = ?2 AND turn_id = ?3 AND item_id = ?4",
                    params![layout.at_ms, self.key, layout.turn, layout.item],
                )?;
            }
            transaction.execute(
                "UPDATE thread_history_projection_state
                 SET next_rollout_byte_offset = ?1, next_rollout_ordinal = ?2 WHERE thread_id = ?3",
                params![
                    end.cast_signed(),
                    layout.last_ordinal.saturating_add(1).cast_signed(),
                    self.key
                ],
            )?;
            Ok(())
        };
        insert().map_err(|e| self.wrap(e))
    }

    fn wrap(&self, source: rusqlite::Error) -> Error {
        let path = self.store.clone().unwrap_or_default();
        Error::store(&path, "failed to work on the store", source)
    }

    fn error(&self, kind: ErrorKind, message: String) -> Error {
        let error = Error::new(kind, message);
        match &self.store {
            Some(path) => error.at(path),
            None => error,
        }
    }
}

/// Whether the history store has a shape that was measured.
pub(crate) enum Schema {
    /// It has.
    Known,
    /// It has not; why.
    Unknown(String),
}

pub(crate) fn schema(store: &Connection) -> rusqlite::Result<Schema> {
    let has_migrations = !columns(store, "_sqlx_migrations")?.is_empty();
    if !has_migrations {
        return Ok(Schema::Unknown("the store lists no migrations".to_owned()));
    }
    let mut statement = store.prepare(
        "SELECT version, success, lower(hex(checksum)) FROM _sqlx_migrations ORDER BY version",
    )?;
    let rows: Vec<(i64, bool, String)> = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    if let Some((version, ..)) = rows.iter().find(|(_, success, _)| !success) {
        return Ok(Schema::Unknown(format!("migration {version} failed")));
    }
    let last = rows.last().map_or(0, |(version, ..)| *version);
    let whole = rows.iter().map(|(version, ..)| *version).eq(1..=last);
    if !whole || !KNOWN_MIGRATIONS.contains(&last) {
        return Ok(Schema::Unknown(format!(
            "the store's newest migration is {last}, which was not measured"
        )));
    }
    let changed = rows
        .iter()
        .zip(CHECKSUMS)
        .find(|((.., sum), known)| !sum.starts_with(known));
    if let Some(((version, ..), _)) = changed {
        return Ok(Schema::Unknown(format!(
            "migration {version} is not the client's own"
        )));
    }
    let mut turns = vec![
        "thread_id",
        "turn_id",
        "rollout_ordinal",
        "status",
        "error_json",
        "started_at",
        "completed_at",
        "duration_ms",
        "first_user_item_id",
        "final_agent_item_id",
        "rollout_byte_offset",
        "rollout_end_ordinal",
        "rollout_end_byte_offset",
    ];
    let mut items = vec![
        "thread_id",
        "turn_id",
        "item_id",
        "rollout_ordinal",
        "created_at_ms",
        "item_json",
        "item_type",
        "updated_at_ordinal",
    ];
    if last >= 7 {
        items.extend(["started_at_ms", "completed_at_ms"]);
    }
    if last >= 8 {
        turns.push("root_turn_id");
    }
    let state = vec![
        "thread_id",
        "next_rollout_byte_offset",
        "next_rollout_ordinal",
    ];
    for (table, expected) in [
        ("thread_turns", turns),
        ("thread_items", items),
        ("thread_history_projection_state", state),
    ] {
        if columns(store, table)? != expected {
            return Ok(Schema::Unknown(format!(
                "the table {table} has other columns than migration {last} makes"
            )));
        }
    }
    Ok(Schema::Known)
}

pub(crate) fn columns(store: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = store.prepare("SELECT name FROM pragma_table_info(?1) ORDER BY cid")?;
    statement.query_map([table], |row| row.get(0))?.collect()
}

pub(crate) fn cursor(store: &Connection, key: &str) -> rusqlite::Result<Option<Cursor>> {
    store
        .query_row(
            "SELECT next_rollout_byte_offset, next_rollout_ordinal
             FROM thread_history_projection_state WHERE thread_id = ?1",
            [key],
            |row| {
                Ok(Cursor {
                    offset: row.get(0)?,
                    ordinal: row.get(1)?,
                })
            },
        )
        .optional()
}
