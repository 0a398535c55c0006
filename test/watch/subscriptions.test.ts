import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { receiver } from "../deliver/receiver.ts"
import { dex } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { startWatch } from "./watching.ts"

test("a file that is changed while dex watch runs tells a webhook what was done to it before", async () => {
  const home = tempDir()
  const project = join(home, "api")
  mkdirSync(join(project, "src"), { recursive: true })
  const file = join(project, "src", "token.ts")
  writeFileSync(file, "export const a = 1\n")
  for (let i = 1; i <= 4; i++)
    claudeSession(home, {
      id: `${i}${i}${i}${i}${i}${i}${i}${i}-1111-4111-8111-111111111111`,
      cwd: project,
      start: `2026-11-0${i}T10:00:00Z`,
      turns: [
        { user: "Let tokens live for an hour" },
        ...["src/token.ts", "src/session.ts"].map((path) => ({
          tool: {
            name: "Edit",
            input: { file_path: join(project, path), old_string: "1", new_string: "2" },
            output: "ok",
          },
        })),
      ],
    })
  await dex(home, ["sync"])
  let heard = (_: string) => {}
  const told = new Promise<string>((resolve) => {
    heard = resolve
  })
  const { url, host } = await receiver(({ body }, response) => {
    response.writeHead(204).end()
    heard(body)
  })
  await dex(home, ["config", "set", "deliver.allow_hosts", host])
  const inProject = (args: string[]) => dex(home, args, {}, undefined, "", project)
  expect(
    await inProject(["subscribe", "src/**", "--url", url, "--min-relevance", "0", "--cooldown-ms", "0"]),
  ).toMatchObject({ code: 0 })
  await startWatch(home, { cwd: project })
  writeFileSync(file, "export const a = 3\n")
  const { data } = JSON.parse(await told)
  expect(data).toMatchObject({ event: "watch", project: "api", file: "src/token.ts" })
  expect(data.items.length).toBeGreaterThan(0)
})
