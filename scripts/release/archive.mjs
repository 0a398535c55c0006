import { constants, crc32, deflateRawSync, gzipSync } from "node:zlib"

/**
 * A file in an archive: its path there, its bytes, and whether it can be executed.
 * @typedef {{ path: string, bytes: Buffer, isProgram?: boolean }} ArchiveFile
 */

/** The time of every file, the same as in packages of npm: the same files always make the same archive. */
const TIME = new Date("1985-10-26T08:15:00Z")
const LEVEL = constants.Z_BEST_COMPRESSION
const BLOCK = 512

/**
 * A .tar.gz of these files.
 * @param {ArchiveFile[]} files
 */
export function tarGz(files) {
  const parts = inOrder(files).flatMap((file) => [
    tarHeader(file),
    file.bytes,
    Buffer.alloc((BLOCK - (file.bytes.length % BLOCK)) % BLOCK),
  ])
  const packed = gzipSync(Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]), { level: LEVEL })
  // The system on which it was packed: unknown.
  packed[9] = 255
  return packed
}

/** @param {ArchiveFile} file */
function tarHeader({ path, bytes, isProgram }) {
  const header = Buffer.alloc(BLOCK)
  const [name, prefix] = tarName(path)
  header.write(name, 0)
  header.write(isProgram ? "0000755\0" : "0000644\0", 100)
  header.write("0000000\x000000000\0", 108)
  header.write(`${bytes.length.toString(8).padStart(11, "0")}\0`, 124)
  header.write(`${(TIME.getTime() / 1000).toString(8).padStart(11, "0")}\0`, 136)
  header.write("        0", 148)
  header.write("ustar\x0000", 257)
  header.write(prefix, 345)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148)
  return header
}

/** A path of up to 100 bytes, or two parts of it. @param {string} path */
function tarName(path) {
  if (Buffer.byteLength(path) <= 100) return [path, ""]
  const cut = path.indexOf("/", path.length - 101)
  if (cut < 1 || cut > 155) throw new Error(`${path} is too long for an archive.`)
  return [path.slice(cut + 1), path.slice(0, cut)]
}

/**
 * A .zip of these files.
 * @param {ArchiveFile[]} files
 */
export function zip(files) {
  const bodies = []
  const directory = []
  let offset = 0
  for (const { path, bytes, isProgram } of inOrder(files)) {
    const name = Buffer.from(path)
    const packed = deflateRawSync(bytes, { level: LEVEL })
    const fields = zipFields(name, bytes, packed)
    const local = Buffer.concat([Buffer.from("PK\x03\x04\x14\0", "latin1"), fields, name, packed])
    const entry = Buffer.alloc(14)
    // The mode of a regular file, as Unix writes it.
    entry.writeUInt32LE(((isProgram ? 0o100755 : 0o100644) << 16) >>> 0, 6)
    entry.writeUInt32LE(offset, 10)
    directory.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\x03\x14\0", "latin1"), fields, entry, name]))
    bodies.push(local)
    offset += local.length
  }
  const entries = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.write("PK\x05\x06", "latin1")
  end.writeUInt16LE(directory.length, 8)
  end.writeUInt16LE(directory.length, 10)
  end.writeUInt32LE(entries.length, 12)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...bodies, entries, end])
}

/** The fields that a file's header and its entry in the directory share. @type {(name: Buffer, bytes: Buffer, packed: Buffer) => Buffer} */
function zipFields(name, bytes, packed) {
  const fields = Buffer.alloc(24)
  const isUtf8 = 0x0800
  const deflated = 8
  fields.writeUInt16LE(isUtf8, 0)
  fields.writeUInt16LE(deflated, 2)
  fields.writeUInt16LE((TIME.getUTCHours() << 11) | (TIME.getUTCMinutes() << 5), 4)
  fields.writeUInt16LE(((TIME.getUTCFullYear() - 1980) << 9) | ((TIME.getUTCMonth() + 1) << 5) | TIME.getUTCDate(), 6)
  fields.writeUInt32LE(crc32(bytes), 8)
  fields.writeUInt32LE(packed.length, 12)
  fields.writeUInt32LE(bytes.length, 16)
  fields.writeUInt16LE(name.length, 20)
  return fields
}

/** @param {ArchiveFile[]} files */
function inOrder(files) {
  return files.toSorted((a, b) => (a.path < b.path ? -1 : 1))
}
