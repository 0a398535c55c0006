import { expect, test } from "vitest"
import { packBlock, readBlock } from "../../src/store/codec.ts"

test("no flipped bit of a block gives other text: it is the same, or it is known to be damaged", () => {
  const lines = Array.from({ length: 40 }, (_, i) =>
    JSON.stringify({ n: i + 1, parts: [{ text: `line ${i} é ${i * i}` }] }),
  )
  const { data } = packBlock(lines)
  const noticed = { damaged: 0, same: 0 }
  for (let bit = 0; bit < data.length * 8; bit++) {
    const flipped = Buffer.from(data)
    flipped[bit >> 3]! ^= 1 << (bit & 7)
    const read = readBlock(flipped)
    if (read === undefined) noticed.damaged++
    else {
      expect([bit, read]).toEqual([bit, lines])
      noticed.same++
    }
  }
  expect(noticed.same).toBeLessThan(noticed.damaged / 100)
})
