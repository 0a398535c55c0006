import { cpSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { auggieConnector } from "../../packages/more-agents/src/auggie.ts"
import { sampleAt } from "../support/samples.ts"
import { tempDir } from "../support/temp.ts"
import { conversationsOf, testConnector } from "./contract.ts"

testConnector(auggieConnector, "test/fixtures/auggie")

const sample = sampleAt("auggie/ctx-auggie/v0.32.0/sessions")
test.skipIf(sample === undefined)(
  "reads both exchanges of another project's sample, as texts and as nodes",
  async () => {
    const home = tempDir()
    mkdirSync(join(home, ".augment"))
    cpSync(sample!, join(home, ".augment", "sessions"), { recursive: true })
    const [session] = [...(await conversationsOf(auggieConnector, home)).values()]
    expect(session!.cwds).toEqual(["/workspace/auggie"])
    expect(session!.messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"])
  },
)
