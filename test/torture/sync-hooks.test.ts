import { spawn } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, test } from "vitest"
import { generateCorpus } from "../../bench/corpus.ts"
import { binOf, launcherFiles } from "../../src/integrations/launcher.ts"
import { DEX, dex } from "../support/dex.ts"
import { tempDir } from "../support/temp.ts"

const HOOKS = 50

type Done = { event: string; busy: boolean; complete: boolean; read: number; added_messages: number }

// The test runs the programs that `dex install` writes. A hook prints nothing, so these programs start a Node wrapper that saves
// the output of each sync.
test.skipIf(process.platform === "win32")(`${HOOKS} hooks at once start one sync`, async () => {
  const home = tempDir()
  const { messages, conversations } = generateCorpus(join(home, ".claude"), { messages: 10_000, seed: 6 })
  const kept = join(home, "kept")
  mkdirSync(kept)
  const node = join(home, "node.sh")
  writeFileSync(node, `#!/bin/sh\nexec '${process.execPath}' "$@" --json >'${kept}/'$$ 2>&1\n`, { mode: 0o755 })
  const bin = binOf(join(home, ".dex"), { platform: process.platform }, node)
  const machine = { home, env: {}, platform: process.platform }
  for (const { path, additions } of launcherFiles(bin, { node, script: DEX }, machine)) {
    mkdirSync(dirname(path), { recursive: true })
    for (const one of additions) if (one.type === "file") writeFileSync(path, one.content, { mode: 0o755 })
  }
  const env = { PATH: process.env.PATH ?? "", HOME: home }
  const codes = await Promise.all(
    Array.from(
      { length: HOOKS },
      () => new Promise((resolve) => spawn(bin.sync!, { env, cwd: home, stdio: "ignore" }).on("exit", resolve)),
    ),
  )
  expect(codes.filter((code) => code !== 0)).toEqual([])
  const outcomes = () =>
    readdirSync(kept).map((name) => readFileSync(join(kept, name), "utf8").trimEnd().split("\n").at(-1)!)
  await expect.poll(() => outcomes().filter((line) => line.includes('"event":"done"')).length).toBe(HOOKS)
  const done = outcomes().map((line) => JSON.parse(line) as Done)
  const working = done.filter(({ read }) => read > 0)
  expect(working).toMatchObject([{ busy: false, complete: true, read: conversations, added_messages: messages }])
  // Hooks that started after the sync had ended found nothing new.
  const busy = done.filter((one) => one.busy).length
  console.log(`${HOOKS} hooks: 1 read, ${busy} left at once, ${HOOKS - 1 - busy} came later and found nothing new`)
  expect(busy).toBeGreaterThan(0)
  expect(JSON.parse((await dex(home, ["stats", "--json"])).stdout)).toMatchObject({ total_messages: messages })
})
