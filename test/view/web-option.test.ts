import { join } from "node:path"
import { beforeAll, expect, test } from "vitest"
import { fill } from "../support/blame-shop.ts"
import { dex } from "../support/dex.ts"
import { makeRepository } from "../support/repository.ts"
import { sharedTempDir } from "../support/temp.ts"
import { startPages } from "./process.ts"

const home = sharedTempDir()
const repository = makeRepository(join(home, "shop"))
beforeAll(() => fill(home, repository))

/** The page that a command opens, and its title. */
async function opened(...words: string[]): Promise<{ path: string; heading: string }> {
  const view = await startPages(home, words, { cwd: repository.folder })
  try {
    const entered = await fetch(view.address)
    const cookie = entered.headers.getSetCookie()[0]!.split(";")[0]!
    const next = /content="0;url=([^"]+)"/.exec(await entered.text())![1]!.replaceAll("&amp;", "&")
    const address = new URL(next, view.address)
    const text = await (await fetch(address, { headers: { cookie } })).text()
    const heading = /<h1[^>]*>([\s\S]*?)<\/h1>/.exec(text)?.[1]?.replace(/<[^>]+>/g, "") ?? text
    return { path: decodeURIComponent(`${address.pathname.split("/").slice(2).join("/")}${address.search}`), heading }
  } finally {
    await view.stop()
  }
}

test("dex blame --web opens the file's page, at the line", async () => {
  const { path, heading } = await opened("blame", "src/zoo.ts:5", "--web")
  expect(path).toBe(`file?project=${repository.folder}&path=src/zoo.ts&at=5`)
  expect(heading).toContain("zoo.ts")
})

test("dex why --web opens the commit's page", async () => {
  const hash = repository.git("rev-parse", "HEAD~2")
  const { path, heading } = await opened("why", "HEAD~2", "--web")
  expect(path).toBe(`commit?project=${repository.folder}&commit=${hash}`)
  expect(heading).toContain("zoo: quokkas")
})

test("dex usage --web opens the usage with the same filters", async () => {
  const { path, heading } = await opened("usage", "month", "--project", "shop", "--web")
  expect(path).toBe("usage?by=month&project=shop")
  expect(heading).toBe("Usage")
})

test("a folder has no page, and dex says so", async () => {
  const { code, stderr } = await dex(home, ["blame", "src", "--web"], {}, undefined, "", repository.folder)
  expect(code).toBe(2)
  expect(stderr).toContain("A page shows one file or one commit.")
})
