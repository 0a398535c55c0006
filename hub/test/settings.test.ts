import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { tempDir } from "../../test/support/temp.ts"
import { SettingsProblem, settingsFrom } from "../src/settings.ts"

function settings(env: Record<string, string>) {
  const file = join(tempDir(), "key")
  writeFileSync(file, "0".repeat(64))
  return settingsFrom({
    ...{ DEX_HUB_DATABASE_URL: "postgres://app", DEX_HUB_INDEX_URL: "postgres://index", DEX_HUB_DATA: "/data" },
    ...{ DEX_HUB_MASTER_KEY_FILE: file, ...env },
  })
}

test("a port is a whole number up to 65535, and is named if it is not", () => {
  expect(settings({})).toMatchObject({ port: 8787, metricsPort: undefined })
  expect(settings({ DEX_HUB_PORT: "0", DEX_HUB_METRICS_PORT: "9100" })).toMatchObject({ port: 0, metricsPort: 9100 })
  for (const name of ["DEX_HUB_PORT", "DEX_HUB_METRICS_PORT"])
    for (const port of ["http", "8787/tcp", "-1", "80.5", "65536"]) {
      expect(() => settings({ [name]: port })).toThrow(SettingsProblem)
      expect(() => settings({ [name]: port })).toThrow(`${name} is "${port}"`)
    }
})

test("a cluster is reached by https, or by http on this machine, and its secrets are in files", () => {
  const file = join(tempDir(), "password")
  writeFileSync(file, "secret\n")
  const cluster = (env: Record<string, string>) => settings({ DEX_HUB_SEARCH_URL: "https://a:9200", ...env }).cluster
  expect(settings({}).cluster).toBeUndefined()
  const addresses = ["https://a:9200", "https://b:9200"]
  expect(
    cluster({
      DEX_HUB_SEARCH_URL: addresses.join(", "),
      DEX_HUB_SEARCH_USER: "dex",
      DEX_HUB_SEARCH_PASSWORD_FILE: file,
    }),
  ).toMatchObject({ addresses, prefix: "dex", shards: 1, user: "dex", password: "secret" })
  expect(cluster({ DEX_HUB_SEARCH_URL: "http://127.0.0.1:9200" })).toMatchObject({ prefix: "dex" })
  for (const address of ["http://search.test:9200", "search.test", "https://a:9200,", "https://dex:secret@a:9200"])
    expect(() => cluster({ DEX_HUB_SEARCH_URL: address })).toThrow(SettingsProblem)
  for (const prefix of ["Dex", "_all", "*", "a,b", "-a", "a".repeat(50)])
    expect(() => cluster({ DEX_HUB_SEARCH_PREFIX: prefix })).toThrow(SettingsProblem)
  for (const shards of ["0", "1.5", "-1", "x"])
    expect(() => cluster({ DEX_HUB_SEARCH_SHARDS: shards })).toThrow(SettingsProblem)
})
