import type { Dirent } from 'node:fs'
import { opendir } from 'node:fs/promises'
import { isUsableName } from '../names/asked-path.ts'
import type { Folder, FolderAccess } from '../root/folder.ts'
import { codeOf } from '../root/system-fault.ts'
import type { FolderRules } from './folder-rules.ts'

/** An entry that a walk has come to. Its folder is open until the walk continues. */
export interface Visited {
  readonly folder: Folder
  readonly name: string
  readonly path: readonly string[]
  readonly kind: 'file' | 'folder' | 'link' | 'other'
}

/** What a walk has left out, and whether it ended early. */
export interface Left {
  /** Folders that could not be read. */
  unreadable: number
  /** Entries whose names no result can show. */
  unusable: number
  /** Entries that were looked at. */
  visited: number
  /** The walk ended at the largest number of entries, or of nested folders. */
  isCut: boolean
}

/** What a walk begins with. */
export function nothingLeft(): Left {
  return { unreadable: 0, unusable: 0, visited: 0, isCut: false }
}

/** Folders within folders that a walk goes down to, at most: each is held open. */
const maxDepth = 100

/**
 * All that a folder holds and tools show, in order of names, each folder before what it holds. Links are not followed.
 */
export async function* walk(
  rules: FolderRules,
  folder: Folder,
  signal: AbortSignal,
  left: Left,
): AsyncGenerator<Visited, void, undefined> {
  for (const visited of await shownEntries(rules, folder, signal, left)) {
    yield visited
    if (visited.kind !== 'folder') continue
    if (left.isCut || visited.path.length >= maxDepth) {
      left.isCut = true
      continue
    }
    const inner = await entered(await rules.root.access(), visited)
    if (inner === undefined) {
      left.unreadable++
      continue
    }
    try {
      yield* walk(rules, inner, signal, left)
    } finally {
      await inner.close()
    }
  }
}

/** The entries of one folder that tools show, in order of names. */
export async function shownEntries(
  { root, maxVisited }: FolderRules,
  folder: Folder,
  signal: AbortSignal,
  left: Left,
): Promise<readonly Visited[]> {
  const found: Visited[] = []
  try {
    for await (const entry of await opendir(folder.at('.'), { bufferSize: 256 })) {
      signal.throwIfAborted()
      if (++left.visited > maxVisited) {
        left.isCut = true
        break
      }
      const path = [...folder.path, entry.name]
      if (root.shown.unshown(path, entry.isDirectory()) !== undefined) continue
      if (isUsableName(entry.name)) found.push({ folder, name: entry.name, path, kind: kindOf(entry) })
      else left.unusable++
    }
  } catch (error) {
    if (codeOf(error) === undefined) throw error
    left.unreadable++
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1))
}

async function entered(access: FolderAccess, { folder, name }: Visited): Promise<Folder | undefined> {
  try {
    return await access.enter(folder, name)
  } catch {
    return undefined
  }
}

function kindOf(entry: Dirent): Visited['kind'] {
  if (entry.isFile()) return 'file'
  if (entry.isDirectory()) return 'folder'
  return entry.isSymbolicLink() ? 'link' : 'other'
}

/** What a walk has left out, as sentences for the head of a result. */
export function leftText(left: Left, maxVisited: number): string {
  const sentences = [
    left.isCut
      ? ` Not everything was looked at: the folder holds more than ${maxVisited} entries, or goes too deep. Name a folder within it.`
      : '',
    left.unreadable > 0 ? ` Folders that could not be read: ${left.unreadable}.` : '',
    left.unusable > 0 ? ` Entries with names that cannot be shown: ${left.unusable}.` : '',
  ]
  return sentences.join('')
}
