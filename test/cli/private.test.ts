import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { claudeSession } from "../support/home.ts"
import { synced } from "../support/synced.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

test("any folder can be made private, even before the first conversation there", async () => {
  const home = await synced()
  const acme = join(home, "clients", "acme")
  mkdirSync(acme, { recursive: true })
  expect((await dex(home, ["private", "clients/acme"])).stdout).toBe(
    "~/clients/acme is private: it is shown only inside that project.\n",
  )
  const turns = [{ user: "Where is the walrusword kept?", assistant: "In the cellar." }]
  claudeSession(home, { id: "77777777-7777-4777-8777-777777777777", cwd: acme, start: "2026-11-03T10:00:00Z", turns })
  await syncHome(home)
  expect((await dex(home, ["search", "walrusword"])).stdout).not.toContain("cellar")
  expect((await dex(home, ["search", "walrusword"], {}, acme)).stdout).toContain("walrusword")
  expect((await dex(home, ["private", acme, "--off"])).stdout).toBe("~/clients/acme is no longer private.\n")
  expect((await dex(home, ["search", "walrusword"])).stdout).toContain("walrusword")
})

test("without a folder it lists private projects, and changes nothing", async () => {
  const home = await synced((at) => mkdirSync(join(at, "secret")))
  const inside = () => dex(home, ["private"], {}, join(home, "secret"))
  expect(await inside()).toMatchObject({
    code: 0,
    stdout: "",
    stderr: expect.stringContaining("No project is private"),
  })
  await dex(home, ["private", "/code/api"])
  for (const _ of [1, 2]) expect(await inside()).toMatchObject({ code: 0, stdout: "/code/api\n" })
})

test("says that a project below the folder is separate", async () => {
  const home = await synced((at) => {
    mkdirSync(join(at, "clients", "acme"), { recursive: true })
    const turns = [{ user: "Hello" }]
    claudeSession(at, {
      id: "88888888-7777-4777-8777-777777777777",
      cwd: join(at, "clients", "acme"),
      start: "2026-11-03T10:00:00Z",
      turns,
    })
  })
  expect((await dex(home, ["private", "clients"])).stderr).toContain(
    "In nested folders, ~/clients/acme is a project of its own, and not private.",
  )
})

test("reports a name that is neither a folder nor a project, with the known projects and how many are left out", async () => {
  const home = await synced((at) => {
    for (let n = 0; n < 6; n++)
      claudeSession(at, {
        id: `9${n}999999-7777-4777-8777-777777777777`,
        cwd: `/code/p${n}`,
        start: "2026-11-03T10:00:00Z",
        turns: [{ user: "Hello" }],
      })
  })
  const { code, stderr } = await dex(home, ["private", "/no/such"])
  expect(code).toBe(2)
  expect(stderr).toMatch(
    /There is no folder or known project called \/no\/such\. Known projects: (\S+, ){5}and 3 more\./,
  )
})
