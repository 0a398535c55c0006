import { openWasm, type WasmFunction, type WasmMemory } from "../../core/wasm.ts"

/**
 * Counts the bits that differ between a query and each of many vectors, stored in chunks of one size. The counting code is
 * 180 bytes of WebAssembly (SIMD), four times as fast as JavaScript, which is the fallback.
 */
export type HammingScanner = {
  setQuery(bits: Uint8Array): void
  /** The memory for the bits of a chunk. Growing moves the memory, so a view is valid only until the next call of `reserve`. */
  chunk(index: number): Uint8Array
  /** Allocates memory for this many chunks. Existing content stays. */
  reserve(chunks: number): void
  /** Returns the distances of the first `size` vectors of a chunk. The next call overwrites them. */
  distances(index: number, size: number): Uint16Array
}

/** The maximum number of bits in a vector. Every 128 bits add at most 8 to each lane, and a lane can count to 255. */
export const MAX_BITS = 31 * 128

/** `stride` is the number of bytes per vector, a multiple of 16. */
export function createHamming(stride: number, chunkSize: number, withoutWasm = false): HammingScanner {
  if (stride % 16 !== 0 || stride * 8 > MAX_BITS) throw new Error(`A vector of ${stride} bytes cannot be scanned.`)
  const outputStart = stride
  const chunksStart = outputStart + Math.ceil((chunkSize * 2) / 16) * 16
  const chunkBytes = chunkSize * stride
  const wasm = withoutWasm ? undefined : openWasm<CountBits>(COUNT_BITS, 1)
  const engine = wasm ? wasmEngine(wasm) : javaScriptEngine()
  engine.grow(chunksStart + chunkBytes)
  return {
    setQuery: (bits) => {
      const query = new Uint8Array(engine.buffer(), 0, stride)
      query.fill(0)
      query.set(bits)
    },
    chunk: (index) => new Uint8Array(engine.buffer(), chunksStart + index * chunkBytes, chunkBytes),
    reserve: (chunks) => engine.grow(chunksStart + chunks * chunkBytes),
    distances: (index, size) => {
      const from = chunksStart + index * chunkBytes
      engine.count(from, from + size * stride, stride, 0, outputStart)
      return new Uint16Array(engine.buffer(), outputStart, size)
    },
  }
}

type CountBits = (from: number, end: number, stride: number, query: number, outputStart: number) => void
type Engine = { buffer(): ArrayBuffer; grow(bytes: number): void; count: CountBits }

const WASM_PAGE_BYTES = 65_536

function wasmEngine({ memory, run }: { memory: WasmMemory; run: CountBits }): Engine {
  return {
    buffer: () => memory.buffer,
    grow: (bytes) => {
      const missing = Math.ceil((bytes - memory.buffer.byteLength) / WASM_PAGE_BYTES)
      if (missing > 0) memory.grow(missing)
    },
    count: run,
  }
}

function javaScriptEngine(): Engine {
  let buffer = new ArrayBuffer(0)
  return {
    buffer: () => buffer,
    grow: (bytes) => {
      if (bytes > buffer.byteLength) buffer = buffer.transfer(bytes)
    },
    count: (from, end, stride, query, outputStart) => {
      const wordsPerVector = stride / 4
      const bits = new Int32Array(buffer, from, (end - from) / 4)
      const queryWords = new Int32Array(buffer, query, wordsPerVector)
      const distances = new Uint16Array(buffer, outputStart, (end - from) / stride)
      for (let i = 0, at = 0; i < distances.length; i++) {
        let distance = 0
        for (let word = 0; word < wordsPerVector; word++) distance += countOnes(bits[at++]! ^ queryWords[word]!)
        distances[i] = distance
      }
    },
  }
}

function countOnes(word: number): number {
  let x = word - ((word >>> 1) & 0x55555555)
  x = (x & 0x33333333) + ((x >>> 2) & 0x33333333)
  return Math.imul((x + (x >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}

const COUNT_BITS = ((): WasmFunction => {
  const [FROM, END, STRIDE, QUERY, OUT, AT, SUM] = [0, 1, 2, 3, 4, 5, 6]
  const get = (local: number) => [0x20, local]
  const set = (local: number) => [0x21, local]
  const tee = (local: number) => [0x22, local]
  const integer = (value: number) => [0x41, value]
  const ADD = [0x6a]
  const END_BLOCK = [0x0b]
  const LOAD = [0xfd, 0x00, 4, 0]
  const lane = (n: number) => [0xfd, 0x1b, n]
  const code = [
    ...[0x02, 0x40, 0x03, 0x40], // block, loop: each vector
    ...[...get(FROM), ...get(END), 0x4f, 0x0d, 1], // past the end: leave the block
    ...[0xfd, 0x0c, ...new Array<number>(16).fill(0), ...set(SUM)],
    ...[...integer(0), ...set(AT)],
    ...[0x03, 0x40], // loop: 16 bytes of the vector
    ...get(SUM),
    ...[...get(FROM), ...get(AT), ...ADD, ...LOAD],
    ...[...get(QUERY), ...get(AT), ...ADD, ...LOAD],
    ...[0xfd, 0x51, 0xfd, 0x62, 0xfd, 0x6e, ...set(SUM)], // v128.xor, i8x16.popcnt, i8x16.add
    ...[...get(AT), ...integer(16), ...ADD, ...tee(AT), ...get(STRIDE), 0x49, 0x0d, 0, ...END_BLOCK],
    ...[...get(OUT), ...get(SUM), 0xfd, 0x7d, 0xfd, 0x7f, ...tee(SUM), ...lane(0)], // pairs to 16 bits, then to 32
    ...[1, 2, 3].flatMap((n) => [...get(SUM), ...lane(n), ...ADD]),
    ...[0x3b, 1, 0], // i32.store16
    ...[...get(OUT), ...integer(2), ...ADD, ...set(OUT)],
    ...[...get(FROM), ...get(STRIDE), ...ADD, ...set(FROM)],
    ...[0x0c, 0, ...END_BLOCK, ...END_BLOCK],
  ]
  const locals = [2, 1, 0x7f, 1, 0x7b] // an i32 and a v128
  return { parameters: 5, returnsInteger: false, locals, code }
})()
