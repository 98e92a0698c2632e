import { statfsSync } from 'node:fs'

/** File system types by the numbers that Linux gives them, where other machines may have the same file open. */
const networkTypes: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'SMB'],
  [0xfe534d42, 'SMB'],
  [0x73757245, 'Coda'],
  [0x5346414f, 'AFS'],
])

/** The name of a file system type that is shared between machines; `undefined` for any other. */
export function networkTypeName(type: number): string | undefined {
  // Some builds of libuv hand the number on as a signed one.
  return networkTypes.get(type >>> 0)
}

/** The name of the network file system that a folder lies on, where the host can tell. */
export function networkFileSystem(folder: string): string | undefined {
  if (process.platform !== 'linux') return undefined
  try {
    return networkTypeName(statfsSync(folder).type)
  } catch {
    // If this check fails, opening reports the error.
    return undefined
  }
}
