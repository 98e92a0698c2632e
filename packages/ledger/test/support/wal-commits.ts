import { readFileSync } from 'node:fs'

const headerBytes = 32
const frameHeaderBytes = 24

/**
 * How many transactions the write-ahead log of an open ledger holds, as SQLite wrote them: the last page of
 * each says how large the database is then. Reading the log drops no lock; SQLite's are on other files.
 */
export function commitsInLog(path: string): number {
  const log = readFileSync(`${path}-wal`)
  if (log.length < headerBytes) return 0
  const pageBytes = log.readUInt32BE(8)
  const salts = log.subarray(16, 24)
  let commits = 0
  for (let at = headerBytes; at < log.length; at += frameHeaderBytes + pageBytes) {
    // Frames of an earlier round of the log have other salts.
    if (!log.subarray(at + 8, at + 16).equals(salts)) break
    if (log.readUInt32BE(at + 4) > 0) commits++
  }
  return commits
}
