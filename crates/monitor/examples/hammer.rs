//! Counts tool calls of one session as fast as it goes: `hammer FOLDER SESSION TIMES`. Several of
//! these at once show whether the store loses one. Fails when a call was not counted.

use std::process::ExitCode;

use ctxfold_monitor::{Config, Event, Happening, Places, Reading, SessionId, Source, Store, step};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [folder, session, times] = &args[..] else {
        return ExitCode::from(2);
    };
    let (Ok(id), Ok(times)) = (SessionId::new(session), times.parse::<u32>()) else {
        return ExitCode::from(2);
    };
    let store = Store::open(&Places {
        runtime: None,
        temp: folder.into(),
    });
    let now = 1_800_000_000;
    let reading = Reading::of_tokens(70, 100, Source::Transcript, Some(now));
    let event = Event {
        happening: Happening::ToolCall,
        reading: Some(reading),
    };
    let config = Config {
        repeat: u64::MAX,
        ..Config::default()
    };
    let count = |_| {
        store
            .transact(&id, |state| step(state, &event, &config, now))
            .is_ok()
    };
    if (0..times).all(count) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
