import { crc32, deflateRawSync } from "node:zlib"

/** A file in an archive. What is not said is true; what is said may be a lie. */
export type Packed = {
  name: string | Buffer
  content?: Buffer | string
  /** The bytes in the archive, if they are not the content's. */
  data?: Buffer
  stored?: boolean
  flags?: number
  method?: number
  bytes?: number
  crc?: number
  mode?: number
  /** The position of another file's data, to share it. */
  offset?: number
  /** Writes sizes and position as zip64 does. */
  large?: boolean
  nameInFile?: string
}

export type ZipLies = {
  entries?: number
  directoryBytes?: number
  directoryOffset?: number
  zip64?: boolean
  comment?: string
}

/** Makes a zip file, also one that no program makes. */
export function zipOf(files: Packed[], lies: ZipLies = {}): Buffer {
  const pieces: Buffer[] = []
  const directory: Buffer[] = []
  let at = 0
  for (const file of files) {
    const content = Buffer.from(file.content ?? "")
    const data = file.data ?? (file.stored ? content : deflateRawSync(content))
    const method = file.method ?? (file.stored ? 0 : 8)
    const crc = file.crc ?? crc32(content)
    const bytes = file.bytes ?? content.length
    const name = Buffer.from(file.name as string)
    const local = Buffer.alloc(30)
    local.writeUInt32LE(0x04034b50)
    local.writeUInt16LE(file.flags ?? 0, 6)
    local.writeUInt16LE(method, 8)
    local.writeUInt32LE(crc, 14)
    const localName = Buffer.from(file.nameInFile ?? name)
    local.writeUInt16LE(localName.length, 26)
    const offset = file.offset ?? at
    if (file.offset === undefined) {
      pieces.push(local, localName, data)
      at += 30 + localName.length + data.length
    }
    const extra = Buffer.alloc(file.large ? 28 : 0)
    if (file.large) {
      extra.writeUInt16LE(1)
      extra.writeUInt16LE(24, 2)
      for (const [i, value] of [bytes, data.length, offset].entries()) extra.writeBigUInt64LE(BigInt(value), 4 + 8 * i)
    }
    const header = Buffer.alloc(46)
    header.writeUInt32LE(0x02014b50)
    header.writeUInt16LE(file.flags ?? 0, 8)
    header.writeUInt16LE(method, 10)
    header.writeUInt32LE(crc, 16)
    header.writeUInt32LE(file.large ? 0xffffffff : data.length, 20)
    header.writeUInt32LE(file.large ? 0xffffffff : bytes, 24)
    header.writeUInt16LE(name.length, 28)
    header.writeUInt16LE(extra.length, 30)
    header.writeUInt32LE(((file.mode ?? 0o100644) << 16) >>> 0, 38)
    header.writeUInt32LE(file.large ? 0xffffffff : offset, 42)
    directory.push(header, name, extra)
  }
  const list = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  const comment = Buffer.from(lies.comment ?? "")
  const count = lies.entries ?? files.length
  const [directoryBytes, directoryOffset] = [lies.directoryBytes ?? list.length, lies.directoryOffset ?? at]
  end.writeUInt32LE(0x06054b50)
  end.writeUInt16LE(lies.zip64 ? 0xffff : count, 8)
  end.writeUInt16LE(lies.zip64 ? 0xffff : count, 10)
  end.writeUInt32LE(lies.zip64 ? 0xffffffff : directoryBytes, 12)
  end.writeUInt32LE(lies.zip64 ? 0xffffffff : directoryOffset, 16)
  end.writeUInt16LE(comment.length, 20)
  const large = Buffer.alloc(lies.zip64 ? 76 : 0)
  if (lies.zip64) {
    large.writeUInt32LE(0x06064b50)
    large.writeBigUInt64LE(44n, 4)
    large.writeBigUInt64LE(BigInt(count), 32)
    large.writeBigUInt64LE(BigInt(directoryBytes), 40)
    large.writeBigUInt64LE(BigInt(directoryOffset), 48)
    large.writeUInt32LE(0x07064b50, 56)
    large.writeBigUInt64LE(BigInt(at + list.length), 64)
  }
  return Buffer.concat([...pieces, list, large, end, comment])
}
