import { expect, test } from "vitest"
import { synced, syncedOnce } from "../support/synced.ts"
import { warmDex } from "../support/warm.ts"
import { visit, visitOnce } from "./served.ts"

const home = syncedOnce()
const visitor = visitOnce(home)

async function newest(): Promise<{ id: string; title: string }> {
  const { stdout } = await warmDex(home, ["list", "--json"])
  return JSON.parse(stdout).conversations[0]
}

test("shows a conversation as a page", async () => {
  const { get, log } = visitor()
  const { id, title } = await newest()
  const answer = await get(`/c/${encodeURIComponent(id)}`)
  const page = await answer.text()
  expect(log).toEqual([])
  expect(answer.status).toBe(200)
  expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8")
  expect(page).toContain(`<h1>${title}</h1>`)
  expect(page).toMatch(/<article class="message person" id="m1"/)
  expect(page).not.toMatch(/ style=| onclick=|<style|<script(?! type="module" src=)/)
})

test.each([
  "part?from=1",
  "part?from=last",
  "find?q=the",
  "find?q=the&part=1",
  "raw",
  "raw?at=1",
  "whole/1/0",
  "export.html",
  "export.md",
])("its %s has an address", async (rest) => {
  const { get, log } = visitor()
  const { id } = await newest()
  const answer = await get(`/c/${encodeURIComponent(id)}/${rest}`)
  expect([answer.status, log]).toEqual([200, []])
  expect((await answer.text()).length).toBeGreaterThan(50)
})

test("reports a missing conversation or message with 404", async () => {
  const { get } = visitor()
  const { id } = await newest()
  for (const path of ["/c/claude_code:nosuch", `/c/${encodeURIComponent(id)}?at=99999`, "/nothing"]) {
    const answer = await get(path)
    expect(answer.status).toBe(404)
    expect(await answer.text()).toMatch(/<h1>(Not shown|Nothing here)<\/h1>/)
  }
})

test("the page can store a note, make a project private and forget a conversation, with its token", async () => {
  const own = await synced()
  const { get, base, cookie } = await visit(own)
  const { conversations } = JSON.parse((await warmDex(own, ["list", "--json"])).stdout)
  const { id, project } = conversations[0]
  const page = await (await get(`/c/${encodeURIComponent(id)}`)).text()
  const token = /name="dex-token" content="([\w-]+)"/.exec(page)![1]!
  const act = (path: string, fields: Record<string, string>) =>
    fetch(`${base}/do/${path}`, {
      method: "POST",
      headers: { cookie, "Sec-Fetch-Site": "same-origin" },
      body: new URLSearchParams({ token, ...fields }),
      redirect: "manual",
    })
  expect((await act("note", { project, text: "Deploys need the VPN", ref: id })).status).toBe(303)
  const notes = await warmDex(own, ["note", "--all", "--json"])
  expect(JSON.parse(notes.stdout).notes[0]).toMatchObject({ text: "Deploys need the VPN", project, by: "person" })

  const question = await (await act("forget", { ref: id })).text()
  expect(question).toContain("Delete permanently?")
  expect((await get(`/c/${encodeURIComponent(id)}`)).status).toBe(200)
  expect(await (await act("forget", { ref: id, yes: "yes" })).text()).toContain("1 conversation forgotten")
  expect((await get(`/c/${encodeURIComponent(id)}`)).status).toBe(404)

  const [, other] = conversations
  expect((await act("private", { project: other.project, yes: "yes" })).status).toBe(200)
  const hidden = await get(`/c/${encodeURIComponent(other.id)}`)
  expect([hidden.status, await hidden.text()]).toEqual([404, expect.stringContaining("private project")])
})
