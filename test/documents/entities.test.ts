import { characterEntities } from "character-entities"
import { decodeNamedCharacterReference as original } from "decode-named-character-reference"
import { expect, test } from "vitest"
import { decodeNamedCharacterReference } from "../../scripts/entities.mjs"

test("the build's table of named characters gives the same answers as the one that it replaces", () => {
  const names = Object.keys(characterEntities)
  expect(names.length).toBeGreaterThan(2_000)
  const others = names.flatMap((name) => [`${name}x`, name.slice(0, -1), name.toUpperCase()])
  for (const name of [...names, ...others, "", "toString", "notit"])
    expect([name, decodeNamedCharacterReference(name)]).toEqual([name, original(name)])
})
