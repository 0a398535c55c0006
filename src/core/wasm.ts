// A small function in WebAssembly, assembled when it is first needed, so that no binary file and no compiler is needed. For loops
// over many bytes: V8 compiles such a function at once and only once, and JavaScript is up to four times slower.

/** The parts of WebAssembly used here, which the type library for servers does not declare. */
type Wasm = {
  Memory: new (size: { initial: number }) => WasmMemory
  Module: new (bytes: Uint8Array) => object
  Instance: new (module: object, imports: object) => { exports: Record<string, unknown> }
}
export type WasmMemory = { buffer: ArrayBuffer; grow(pages: number): number }

const wasm = (globalThis as { WebAssembly?: Wasm }).WebAssembly

/** The parameters are integers. `code` is followed by the end of the function. */
export type WasmFunction = { parameters: number; returnsInteger: boolean; locals: number[]; code: number[] }

/** Returns undefined if this Node has no WebAssembly, or if there is no room for its memory. */
export function openWasm<Run>(declaration: WasmFunction, pages: number): { run: Run; memory: WasmMemory } | undefined {
  if (!wasm) return undefined
  const { Memory, Module, Instance } = wasm
  try {
    const memory = new Memory({ initial: pages })
    const { exports } = new Instance(new Module(assembleModule(declaration, pages)), { dex: { memory } })
    return { run: exports.run as Run, memory }
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}

/** One import (the memory), one export (`run`). */
function assembleModule({ parameters, returnsInteger, locals, code }: WasmFunction, pages: number): Uint8Array {
  const name = (text: string) => [text.length, ...Buffer.from(text)]
  const section = (id: number, content: number[]) => [id, ...encodeInteger(content.length), ...content]
  const body = [...locals, ...code, 0x0b]
  return new Uint8Array([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, [1, 0x60, parameters, ...Array(parameters).fill(0x7f), ...(returnsInteger ? [1, 0x7f] : [0])]),
    ...section(2, [1, ...name("dex"), ...name("memory"), 2, 0, pages]),
    ...section(3, [1, 0]),
    ...section(7, [1, ...name("run"), 0, 0]),
    ...section(10, [1, ...encodeInteger(body.length), ...body]),
  ])
}

/** Encodes an integer that is not negative as LEB128, in a form that is the same if it is read as a signed one. */
export function encodeInteger(value: number): number[] {
  return value < 64 ? [value] : [(value & 127) | 128, ...encodeInteger(value >>> 7)]
}
