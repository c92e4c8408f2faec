// The plain way to look at a session: read the file, parse each line.
import { readFileSync } from "node:fs";

let rows = 0;
let tokens = 0;
for (const line of readFileSync(process.argv[2], "utf8").split("\n")) {
  if (line === "") continue;
  const row = JSON.parse(line);
  rows += 1;
  tokens += row.message?.usage?.output_tokens ?? 0;
}
console.log(rows, tokens);
