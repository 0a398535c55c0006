import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { generateCorpus } from "../../bench/corpus.ts"
import { watchMemory } from "../../bench/tree-memory.ts"
import { connect } from "../mcp/client.ts"
import { dex, startDex } from "../support/dex.ts"
import { makeRepository } from "../support/repository.ts"
import { tempDir } from "../support/temp.ts"

/** The limit for the peak memory of a command with all processes that it starts. */
const MOST_MB = 300
/** Ends a test that hangs. A test takes 40 s on two free processors, and twelve times as long next to thirty busy programs. */
const HANGS_MS = 900_000

async function memoryOf(home: string, args: string[], cwd = home): Promise<number | undefined> {
  const child = startDex(home, args, undefined, {}, cwd)
  const memory = watchMemory(child.pid!)
  let said = ""
  for (const stream of [child.stdout!, child.stderr!]) stream.on("data", (chunk) => (said += chunk))
  const code = await new Promise((resolve) => child.once("close", resolve))
  const peak = memory.stop()
  expect([0, 1], said).toContain(code)
  if (peak === undefined) console.log("NOT ASSERTED: memory; this system does not tell it")
  else console.log(`dex ${args.slice(0, 2).join(" ")}: ${(peak / 1e6).toFixed(0)} MB`)
  return peak === undefined ? undefined : peak / 1e6
}

test("a first suggest in a repository of shell, PowerShell and C, with everything still to learn, takes under 300 MB", {
  timeout: HANGS_MS,
}, async () => {
  const home = tempDir()
  generateCorpus(join(home, ".claude"), { messages: 24_000, seed: 9 })
  expect((await dex(home, ["sync"])).code).toBe(0)
  const { folder, git } = makeRepository(join(home, "code"))
  for (let n = 0; n < 20; n++) {
    const steps = (step: (i: number) => string) => Array.from({ length: 60 }, (_, i) => step(i)).join("\n")
    writeFileSync(
      join(folder, `s${n}.sh`),
      steps((i) => shell(n, i)),
    )
    writeFileSync(
      join(folder, `p${n}.ps1`),
      steps((i) => powershell(n, i)),
    )
    writeFileSync(
      join(folder, `c${n}.c`),
      steps((i) => c(n, i)),
    )
  }
  git("add", ".")
  git("commit", "-q", "-m", "steps")
  const peak = await memoryOf(home, ["suggest", "--file", "s1.sh"], folder)
  if (peak !== undefined) expect(peak).toBeLessThan(MOST_MB)
})

test("docs add of 1,200 documents takes under 300 MB", { timeout: HANGS_MS }, async () => {
  const home = tempDir()
  const folder = join(home, "guide")
  mkdirSync(folder)
  for (let n = 0; n < 1_200; n++)
    writeFileSync(join(folder, `${n}.md`), Array.from({ length: 40 }, (_, i) => section(n, i)).join("\n"))
  const peak = await memoryOf(home, ["docs", "add", folder])
  if (peak !== undefined) expect(peak).toBeLessThan(MOST_MB)
})

/** The limit for the peak memory of a server. */
const MOST_SERVER_MB = 200
/** The queries of each of eight rounds. A search unpacks about 4 MB: a server that kept them would need 492 MB instead of 152. */
const QUERIES = ["import const return", "function error", "token refresh", "await result", "class new"].flatMap(
  (query) => [query, `${query} if`],
)

test("a server that repeatedly reads and learns from 3 MB of new messages and is searched 80 times stays under 200 MB", {
  timeout: HANGS_MS,
}, async () => {
  const home = tempDir()
  generateCorpus(join(home, ".claude"), { messages: 20_000, seed: 9 })
  expect((await dex(home, ["sync"])).code).toBe(0)
  const client = await connect(home)
  const messages = async () => {
    const { structuredContent } = await client.call("dex_stats")
    return (structuredContent as { total_messages: number }).total_messages
  }
  let expected = await messages()
  await client.call("context_suggest", { error: "TypeError: refresh is not a function" })
  for (let round = 0; round < 8; round++) {
    expected += generateCorpus(join(home, ".claude"), { messages: 3_000, seed: 100 + round }).messages
    await expect.poll(messages, { timeout: HANGS_MS / 3 }).toBe(expected)
    await client.call("context_suggest", { error: "TypeError: refresh is not a function" })
    for (const query of QUERIES) await client.call("dex_search", { query, limit: 50 })
  }
  const status = `/proc/${client.child.pid}/status`
  if (!existsSync(status)) return console.log("NOT ASSERTED: memory; this system does not tell it")
  const peak = Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(status, "utf8"))![1]) / 1000
  console.log(`a server: ${peak.toFixed(0)} MB`)
  expect(peak).toBeLessThan(MOST_SERVER_MB)
})

const shell = (n: number, i: number) => `# Step ${n}.${i}
step_${n}_${i}() {
  local name="$1" count=\${2:-${i}}
  if [[ -z "$name" || "$count" -gt ${i + 3} ]]; then
    echo "usage: step <name>" >&2; return ${i % 7}
  fi
  for file in "\${files[@]}"; do
    case "$file" in
      *.${i}) cp "$file" "$HOME/.cache/\${name%%.*}-$count" | sed -e 's/a/b/g' > /dev/null 2>&1 ;;
      *) printf '%s\\n' "$(basename "$file")" ;;
    esac
  done
}
`

const powershell = (n: number, i: number) => `<#
.SYNOPSIS
Step ${n}.${i}
#>
function Get-Step${n}x${i} {
  [CmdletBinding()] param([Parameter(Mandatory=$true)][string]$Name, [int]$Count = ${i})
  if ($Count -gt ${i} -and -not [string]::IsNullOrEmpty($Name)) {
    Write-Output ("{0}-{1}" -f $Name, $Count) | Where-Object { $_.Length -lt ${i + 40} }
  } else { throw "No step: $($Name.ToUpper())" }
}
`

const c = (n: number, i: number) => `/* Step ${n}.${i} */
static int step_${n}_${i}(const char *name, size_t count) {
  struct node *at = list_head(&steps[${i}]);
  while (at && at->count < (count << ${i % 5})) {
    if (strcmp(at->name, name) == 0 || !at->next) return (int)(at->count * ${i}u);
    at = at->next;
  }
  for (size_t k = 0; k < count; k++) total[k] += (double)k / (1.0 + ${i});
  return -1;
}
`

const section = (n: number, i: number) => `## Step ${n}.${i}

Run \`step ${i}\` *before* the [next](${i}.md) one, **never** after it; see ~~old~~ notes ${n * i}.

- one \`a${i}\`
- two
  - deeper ${i}

| name | value |
|---|---|
| a${i} | ${n} |
| b | *${i}* |

\`\`\`sh
step --count ${i} # not a heading
\`\`\`
`
