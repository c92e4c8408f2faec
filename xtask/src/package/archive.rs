//! A zip for each plugin, and the checksums of every file: the same bytes for the same content.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::check::Tree;
use crate::shell::Result;

/// The file of checksums, as `sha256sum --check` reads it.
pub(super) const SUMS: &str = "SHA256SUMS";

/// Writes `zip/NAME-VERSION.zip` for each plugin, and one for each folder for another client.
pub(super) fn write_zips(stage: &Path, version: &str) -> Result<()> {
    let zips = stage.join("zip");
    fs::create_dir_all(&zips)
        .map_err(|error| format!("failed to make {}: {error}", zips.display()))?;
    for group in ["plugins", "gemini", "antigravity"] {
        for name in Tree::read(&stage.join(group))?.top_folders() {
            let file = match group {
                "plugins" => format!("{name}-{version}.zip"),
                other => format!("{name}-{other}-{version}.zip"),
            };
            write_zip(&stage.join(group).join(&name), &zips.join(file))?;
        }
    }
    Ok(())
}

/// The archive's root is the folder's content. Order, times and modes are fixed.
fn write_zip(folder: &Path, path: &Path) -> Result<()> {
    let file = File::create(path)
        .map_err(|error| format!("failed to write {}: {error}", path.display()))?;
    let mut zip = ZipWriter::new(file);
    for entry in Tree::read(folder)?.files() {
        let mode = if entry.is_executable { 0o755 } else { 0o644 };
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default())
            .unix_permissions(mode);
        zip.start_file(entry.path.as_str(), options)?;
        let bytes = read(&folder.join(&entry.path))?;
        zip.write_all(&bytes)
            .map_err(|error| format!("failed to write {}: {error}", path.display()))?;
    }
    zip.finish()?;
    Ok(())
}

/// Writes the checksums of every file below the folder, sorted by path.
pub(super) fn write_sums(stage: &Path) -> Result<()> {
    let path = stage.join(SUMS);
    fs::write(&path, sums(stage)?)
        .map_err(|error| format!("failed to write {}: {error}", path.display()).into())
}

/// The text of the checksums file.
pub(super) fn sums(folder: &Path) -> Result<String> {
    let mut text = String::new();
    for entry in Tree::read(folder)?.files() {
        if entry.path == SUMS {
            continue;
        }
        let digest = Sha256::digest(read(&folder.join(&entry.path))?);
        for byte in digest {
            text += &format!("{byte:02x}");
        }
        text += &format!("  {}\n", entry.path);
    }
    Ok(text)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|error| format!("failed to read {}: {error}", path.display()).into())
}
