import { describe, expect, test } from "vitest"
import { modelServer } from "../../test/support/model-server.ts"
import { hasPostgres } from "./support/postgres.ts"
import { REF, whoLeft } from "./support/queue.ts"

const QUESTION = "where should we store the queue"

describe.skipIf(!hasPostgres)("what somebody knew who left", () => {
  test("is found by dex ask, cited with their name, and only by who may read it", async () => {
    const { hub, bob, cy } = await whoLeft()
    const ask = (who: typeof bob, env = {}) => who.run(["ask", QUESTION, "--team"], env)
    await expect.poll(async () => (await ask(bob)).code, { timeout: 30_000 }).toBe(0)
    const quoted = await ask(bob)
    expect(quoted.stdout).toContain("we should always store the queue in Postgres")
    expect(quoted.stdout).toContain(`${REF}#2`)

    // Bob's own model answers: what it says is checked, and the hub is asked for more of it.
    const server = await modelServer(({ body }, turn) => {
      const shown = body.messages.map(({ content }) => content ?? "").join("\n")
      const n = /\[(\d+)\] ann\/claude_code:[\w-]+#2 /.exec(shown)?.[1]
      if (turn === 0) return [{ calls: [{ id: "c1", name: "read", arguments: JSON.stringify({ ref: `${REF}#2` }) }] }]
      return [{ text: `The queue is stored in Postgres [${n}]. It is stored in Redis [${n}].` }]
    })
    const told = await ask(bob, { DEX_LLM_PROVIDER: server.url })
    expect(told.stdout).toMatch(/^The queue is stored in Postgres \[\d+\]\.\n/)
    expect(told.stdout).not.toContain("Redis")
    expect(told.stdout).toContain(`${REF}#2`)
    const read = server.asked.at(-1)!.body.messages.at(-1)!.content
    expect(read).toContain("please find out why and repair that")

    const nothing = await ask(cy)
    expect([nothing.code, nothing.stdout]).toEqual([1, ""])
    expect(nothing.stderr).not.toMatch(/ann|queue is/)
    const documents = await bob.run(["ask", QUESTION, "--team", "--scope", "docs"])
    expect([documents.code, documents.stderr]).toEqual([2, expect.stringContaining("no documents")])
    await hub.kill()
    const alone = await ask(bob)
    expect([alone.code, alone.stderr]).toEqual([2, expect.stringContaining("cannot be reached")])
  }, 240_000)
})
