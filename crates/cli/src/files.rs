//! Writing files of our own: private folders, whole files or none, nothing through links.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read as _, Write as _};
#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::error::{CommandError, CommandResult};

/// Largest file of ours that is read whole, in bytes.
const LARGEST: u64 = 1 << 20;

/// Makes a folder and its parents, for the user alone.
pub(crate) fn private_dir(path: &Path) -> CommandResult {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    builder.mode(0o700);
    builder
        .create(path)
        .map_err(|e| CommandError::io("make the folder", path, &e))
}

/// Options that open a file of ours without following a link at its name.
pub(crate) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.mode(0o600).custom_flags(flags.bits().cast_signed());
    }
    options
}

/// Reads a small file of ours; `None` when it is not there.
pub(crate) fn read_small(path: &Path) -> CommandResult<Option<String>> {
    let file = match options().read(true).open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(CommandError::io("open", path, &e)),
    };
    let meta = file
        .metadata()
        .map_err(|e| CommandError::io("read", path, &e))?;
    if !meta.is_file() {
        return Err(CommandError::input(format!(
            "{} is not a regular file",
            path.display()
        )));
    }
    if meta.len() > LARGEST {
        return Err(CommandError::input(format!(
            "{} is larger than 1 MiB",
            path.display()
        )));
    }
    let mut text = String::new();
    let mut limited = file.take(LARGEST + 1);
    limited
        .read_to_string(&mut text)
        .map_err(|e| CommandError::io("read", path, &e))?;
    Ok(Some(text))
}

/// Whether others than the owner may read the file.
#[cfg(unix)]
pub(crate) fn is_open_to_others(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.mode() & 0o077 != 0)
}

#[cfg(not(unix))]
pub(crate) fn is_open_to_others(_path: &Path) -> bool {
    false
}

/// Writes a whole file or nothing, for the user alone: into a new file beside it, then renamed.
pub(crate) fn write_private(path: &Path, text: &str) -> CommandResult {
    let folder = path.parent().unwrap_or(Path::new("."));
    private_dir(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = folder.join(format!(".{name}.{:032x}", crate::env::random()));
    let write = || -> std::io::Result<()> {
        let mut file: File = options().write(true).create_new(true).open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    };
    write().map_err(|e| {
        // The half file is ours alone; when it cannot be removed either, the first error matters.
        let _ = std::fs::remove_file(&beside);
        CommandError::io("write", path, &e)
    })
}
