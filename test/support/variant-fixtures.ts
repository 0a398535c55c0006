import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { unpackFixture } from "../../src/testing/contract.ts"
import { sharedTempDir } from "./temp.ts"

const FIXTURES = join(import.meta.dirname, "../fixtures")

/** For each variant, the fixtures of the agent with the same format, and where the variant would keep them. */
const VARIANTS: Record<
  string,
  { of: string; fixtures: string[]; from: string; to: string; database?: [string, string] }
> = {
  openclaude: {
    of: "claude_code",
    fixtures: ["1.0.60-inline-sidechain-resume-copy", "2.1.42-compaction-rewind-progress"],
    from: ".claude",
    to: ".openclaude",
  },
  qoder: {
    of: "claude_code",
    fixtures: ["2.0.76-sibling-agents-summaries", "2.1.42-compaction-rewind-progress"],
    from: ".claude",
    to: ".qoder",
  },
  traex: { of: "codex", fixtures: ["0.98-fork", "0.98-legacy-events"], from: ".codex", to: ".trae/cli" },
  open_interpreter: {
    of: "codex",
    fixtures: ["0.98-fork", "0.166-subagent-aborted"],
    from: ".codex",
    to: ".openinterpreter",
  },
  kilo: {
    of: "opencode",
    fixtures: ["1.18-traps", "1.18.33-tools-and-subagent"],
    from: ".local/share/opencode",
    to: ".local/share/kilo",
    database: ["opencode.db", "kilo.db"],
  },
  mimocode: {
    of: "opencode",
    fixtures: ["1.18-traps", "1.18.33-tools-and-subagent"],
    from: ".local/share/opencode",
    to: ".local/share/mimocode",
    database: ["opencode.db", "mimocode.db"],
  },
  tabnine_cli: {
    of: "gemini_cli",
    fixtures: ["0.40-json-and-jsonl", "0.60-patches"],
    from: ".gemini",
    to: ".tabnine/agent",
  },
  kilo_editor: {
    of: "roo_code",
    fixtures: ["3.20-written-tools", "3.52-native-tools-subtask"],
    from: ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline",
    to: ".config/Code/User/globalStorage/kilocode.kilo-code",
  },
  qclaw: { of: "openclaw", fixtures: ["2026.2-tools", "2026.5-index-archive"], from: ".openclaw", to: ".qclaw" },
  omp: { of: "pi", fixtures: ["0.73.1-tools", "0.87-tree"], from: ".pi", to: ".omp" },
}

/** The sources whose fixtures are made from those of their parent. */
export const movedSources = Object.keys(VARIANTS)

/** A folder of fixtures for a variant, each with its parent's golden file; undefined for any other source. */
export async function variantFixtures(source: string): Promise<string | undefined> {
  const moved = VARIANTS[source]
  if (!moved) return undefined
  const folder = sharedTempDir()
  for (const name of moved.fixtures) {
    const parent = join(FIXTURES, moved.of, name)
    const at = join(folder, name)
    mkdirSync(at)
    const home = await unpackFixture(parent, at)
    mkdirSync(dirname(join(home, moved.to)), { recursive: true })
    renameSync(join(home, moved.from), join(home, moved.to))
    if (moved.database) renameDatabases(join(home, moved.to), ...moved.database)
    const golden = readFileSync(join(parent, "expected.json"), "utf8").replaceAll(`~/${moved.from}`, `~/${moved.to}`)
    writeFileSync(join(at, "expected.json"), golden)
  }
  return folder
}

function renameDatabases(folder: string, from: string, to: string): void {
  for (const name of readdirSync(folder))
    if (name.startsWith(from)) renameSync(join(folder, name), join(folder, name.replace(from, to)))
}
