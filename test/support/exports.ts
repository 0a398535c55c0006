import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import type { Connector, ExportedItem, Machine, Unit } from "../../src/agents/kit/connector.ts"
import type { RawRecord } from "../../src/core/record.ts"
import { parseDocument } from "../../src/documents/document.ts"

/** A connector that finds what a service exported in the folder of a fixture, so that the contract can try it. */
export function onFixtures(connector: Connector): Connector {
  const itemsAt = (path: string) =>
    (JSON.parse(readFileSync(path, "utf8")) as RawRecord[]).flatMap((item) => itemOf(connector, item) ?? [])
  const unitsAt = (path: string): Unit[] => {
    const { mtimeMs, size } = statSync(path)
    return [...new Set(itemsAt(path).map(({ key }) => key))].map((key) => ({
      ...{ key, path, stamp: `${size}`, bytes: size, modifiedAt: mtimeMs, bornAt: mtimeMs },
    }))
  }
  return Object.assign(Object.create(connector) as Connector, {
    roots: ({ home }: Machine) => [home],
    discover: (root: string) =>
      readdirSync(root).flatMap((name) => (name.endsWith(".json") ? unitsAt(join(root, name)) : [])),
    read: async (unit: Unit) => {
      const records = itemsAt(unit.path).flatMap((item) => (item.key === unit.key ? item.records : []))
      for (const part of records.flatMap((record) => connector.exported!.htmlIn?.(record) ?? [])) {
        part.text = (await parseDocument(String(part.html), "html")).sections.map(({ text }) => text).join("\n\n")
        delete part.html
      }
      return {
        mode: "replace" as const,
        records,
        end: () => ({ cursor: { offset: 0, crc: 0 }, skipped: [], pending: false }),
      }
    },
  })
}

function itemOf({ exported }: Connector, item: RawRecord): ExportedItem | undefined {
  const { [exported!.messages ?? ""]: messages = [], ...fields } = item
  const list = Array.isArray(messages)
    ? (messages as RawRecord[])
    : Object.entries(messages as Record<string, RawRecord>).map(([id, message]) => ({ id, ...message }))
  return exported!.itemOf(fields, list)
}
