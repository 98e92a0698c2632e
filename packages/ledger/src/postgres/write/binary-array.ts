/** The types of elements, as the catalogue of every Postgres numbers them. */
const elementTypes = { bytea: 17, int8: 20, text: 25 } as const

const headBytes = 20
const lengthBytes = 4
const int8Bytes = 8

/** An array parameter in the binary form of the protocol, which takes less time than text on both sides. */
function arrayHead(type: keyof typeof elementTypes, count: number, bytes: number): Buffer {
  const array = Buffer.allocUnsafe(headBytes + bytes)
  // One dimension, no flag, the type, and of the dimension its length and where it begins.
  array.writeInt32BE(1, 0)
  array.writeInt32BE(0, 4)
  array.writeInt32BE(elementTypes[type], 8)
  array.writeInt32BE(count, 12)
  array.writeInt32BE(1, 16)
  return array
}

/** Whole numbers, of which each is a safe integer. */
export function int8Array(values: readonly number[]): Buffer {
  const array = arrayHead('int8', values.length, values.length * (lengthBytes + int8Bytes))
  let offset = headBytes
  for (const value of values) {
    const high = Math.floor(value / 2 ** 32)
    offset = array.writeInt32BE(int8Bytes, offset)
    offset = array.writeInt32BE(high, offset)
    offset = array.writeUInt32BE(value - high * 2 ** 32, offset)
  }
  return array
}

/** Encodes texts and nulls. */
export function textArray(values: readonly (string | null)[]): Buffer {
  let bytes = 0
  for (const value of values) bytes += lengthBytes + (value === null ? 0 : Buffer.byteLength(value))
  const array = arrayHead('text', values.length, bytes)
  let offset = headBytes
  for (const value of values) {
    const length = value === null ? -1 : array.write(value, offset + lengthBytes)
    array.writeInt32BE(length, offset)
    offset += lengthBytes + Math.max(length, 0)
    if (value === null) array.writeInt32BE(1, 4)
  }
  return array
}

/** Bytes. */
export function byteaArray(values: readonly Uint8Array[]): Buffer {
  let bytes = 0
  for (const { length } of values) bytes += lengthBytes + length
  const array = arrayHead('bytea', values.length, bytes)
  let offset = headBytes
  for (const value of values) {
    offset = array.writeInt32BE(value.length, offset)
    array.set(value, offset)
    offset += value.length
  }
  return array
}
