//! What each finding means: what it is, what the client does with it, what to do.

use crate::Code;

/// Explains a finding: what it is, what the client does with it, and what to do about it.
pub fn explain(code: Code) -> &'static str {
    match code {
        Code::TornLine => {
            "A line ends in the middle of its object: the process that wrote it was killed, or the \
             disk was full. The client skips the line and reads on; what the line said is lost, and \
             rows that name it as their parent hang in the air. Nothing needs to be done to resume. \
             Older clients stopped reading here, so a repaired copy is safer to share."
        }
        Code::TornTail => {
            "The last line ends in the middle of its object: a write was cut short, or the client \
             is writing right now. The client skips the line, adds a line end and goes on after it. \
             If no client is running, the line's message is lost; nothing else is."
        }
        Code::SplicedLine => {
            "Two writes ran into each other: a row stops in the middle and another one begins on \
             the same line. The second row is whole and was read; of the first only a fragment is \
             left. A client may skip both. `repair` appends the whole row again, on a line of its \
             own; the damaged line stays as it is."
        }
        Code::GluedLines => {
            "Several whole rows stand on one line, because a line end was lost. All of them were \
             read. A client may skip the line; `repair` appends its rows again, each on a line of \
             its own, and leaves the line as it is."
        }
        Code::NulRun => {
            "A run of NUL bytes, as a crash leaves behind when the file had grown but its content \
             had not reached the disk. The bytes were skipped; rows around them were read. What \
             should have been there is lost."
        }
        Code::Garbage => {
            "Bytes that are no JSON object. The client skips such a line, and so do we. Usually \
             another program wrote into the file."
        }
        Code::ByteOrderMark => {
            "The file begins with a byte order mark, as some editors on Windows add. It is skipped \
             when reading and kept when writing. Nothing needs to be done."
        }
        Code::InvalidUtf8 => {
            "A row holds bytes that are no UTF-8. The client shows a replacement character in \
             their place. The row is otherwise whole."
        }
        Code::LoneSurrogate => {
            "A text holds one half of a UTF-16 surrogate pair, usually because an emoji was cut in \
             two. The client copes; the API may answer 400 to such a request. Folding the output \
             that holds it takes it out of the request."
        }
        Code::CarriageReturns => {
            "Lines end with CR LF, as after a conversion on Windows. Clients read that; what we \
             append ends as the newest lines do."
        }
        Code::NoFinalNewline => {
            "The last row is whole, but its line end is missing. The client adds one before it \
             writes on, and so do we."
        }
        Code::UnknownKind => {
            "Rows of a kind that this version does not know, as newer clients write. They are kept \
             untouched and their bytes are counted; they do not reach the model as far as is known."
        }
        Code::DanglingParent => {
            "Rows name a parent that is not in the file: it was lost, or it was never written, \
             which happens for rows that the client keeps only in memory. The client starts the \
             conversation at such a row, so everything before it is out of reach unless a \
             compaction lists it. No link is invented in its place."
        }
        Code::ParentCycle => {
            "Following the parents of a row comes back to the same row. The client stops there; \
             what lies before is out of reach."
        }
        Code::DuplicateUuid => {
            "Two rows that differ in kind or parent share one uuid. The client takes the last one \
             in the file. Rows that only replace an earlier version of themselves (as a fold does) \
             are not reported."
        }
        Code::DuplicateToolId => {
            "Two tool calls share an identifier, so a result cannot be paired for certain; the API \
             answers 400 to such a request. These calls are never folded or dropped."
        }
        Code::EmptyToolId => {
            "A tool call or result has an empty identifier and cannot be paired. The API answers \
             400 to such a request. These calls are never folded or dropped."
        }
        Code::OrphanResult => {
            "A tool result whose call is not in the conversation. Current clients leave it out of \
             the request; older ones send it and get a 400 (unexpected tool_use_id)."
        }
        Code::MissingResult => {
            "A tool call without a result, although the conversation went on: it was interrupted. \
             The client leaves the call out or puts a result in its place that says so. The call is \
             never touched by a compaction."
        }
        Code::PendingCall => {
            "The last tool call has no result yet: the tool is running, or the client was stopped. \
             A call that waits is never touched by a compaction."
        }
        Code::PreservedMissing => {
            "A compaction lists rows to keep that are not in the file. The client then drops the \
             whole kept tail, not only the missing rows. Writing a new compaction is refused; \
             `undo` brings the conversation before this compaction back."
        }
        Code::AnchorMissing => {
            "A compaction hangs its kept rows on a row that is not in the file. The client drops \
             the kept tail. Writing a new compaction is refused; `undo` brings the conversation \
             before this compaction back."
        }
        Code::CompactionBypassed => {
            "The newest rows go on from a row before the last compaction, so the client sends what \
             was compacted, and the compaction counts for nothing. A client that ran while another \
             program compacted does that, and so does going back in the conversation to before the \
             compaction. Where it was not meant, compact again: what was said since is kept."
        }
        Code::RepeatedMessage => {
            "Rows behind a compaction carry the identifier of a message that stands before it, in \
             rows of their own. The client puts rows of one message together, wherever they stand, \
             and sends their text twice. Nothing is lost; it costs tokens. A program that writes \
             rows again must keep their uuids or give the message a new identifier."
        }
        Code::SidechainLeaf => {
            "The newest last-prompt row points to a row of a sub-agent. The client then says that \
             no conversation was found. A new last-prompt row that names the main conversation's \
             last row cures it."
        }
        Code::LeafWithoutTimestamp => {
            "The row from which the client would resume has no timestamp. Version 2.1.197 then says \
             that no conversation was found; newer versions resume."
        }
        Code::ImageTooLarge => {
            "An image has a side of more than 8000 pixels. The API refuses every request that \
             holds it, so the session cannot go on. Folding the image cures it."
        }
        Code::RequestTooLarge => {
            "The conversation holds more bytes than one request to the API may have (20 MB). The \
             client cannot send it, however many tokens it is. Folding large outputs cures it."
        }
        Code::Credential => {
            "Text that looks like a password, key or token stands in the transcript, where every \
             program of this user can read it, and it was sent to the model. It is replaced before \
             we send anything to a model; the file itself is not changed. Consider to revoke it."
        }
        Code::NoConversation => {
            "The file holds no prompt and no answer. The client does not list it as a session."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_own_text() {
        let texts: std::collections::HashSet<_> = Code::ALL.iter().map(|c| explain(*c)).collect();
        assert_eq!(texts.len(), Code::ALL.len());
        assert!(texts.iter().all(|t| t.len() > 80 && t.ends_with('.')));
    }
}
