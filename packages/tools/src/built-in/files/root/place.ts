import type { Stats } from 'node:fs'
import { lstat, mkdir, opendir, readlink, realpath } from 'node:fs/promises'
import { isAbsolute, relative, sep } from 'node:path'
import { nearestNames } from '@tallystick/core/kit'
import { ToolError } from '../../../execution/tool-error.ts'
import { isUsableName, pathText, quoted } from '../names/asked-path.ts'
import type { Folder, FolderAccess } from './folder.ts'
import type { Root } from './root.ts'
import { codeOf, faultAt } from './system-fault.ts'

/** Where a path leads: a folder, or an entry of a folder. The folder is open until the call has used it. */
export interface Place {
  /** The folder itself, or the folder that the entry is in. */
  readonly folder: Folder
  /** The name of the entry; `undefined` for a folder. */
  readonly name?: string
  /** The names from the root down, links resolved. */
  readonly path: readonly string[]
  /** What is there; `undefined` where there is nothing yet. */
  readonly stats?: Stats
}

/** What a path may lead to. */
export interface Lookup {
  /** A file that does not exist yet is a place, and so are folders above it, which are made. */
  readonly toMake?: boolean
}

const maxLinks = 40
const maxSteps = 2_000

/**
 * Looks a path up and calls `use` with where it leads: never outside the root, and never to what is hidden or ignored.
 * Links are followed name by name, each in the folder that it is in. Rejects with a `ToolError` that says what is wrong
 * with the path, and where.
 */
export async function withPlace<Result>(
  root: Root,
  parts: readonly string[],
  lookup: Lookup,
  use: (place: Place) => Promise<Result>,
): Promise<Result> {
  const walk = new Walk(root, await root.access(), parts)
  try {
    return await use(await walk.toPlace(lookup))
  } catch (error) {
    throw faultAt(error, pathText(parts))
  } finally {
    await walk.close()
  }
}

/** One look-up: the folder that it has reached, and the names that are left. */
class Walk {
  readonly #root: Root
  readonly #access: FolderAccess
  readonly #asked: string
  #left: readonly string[]
  #folder: Folder | undefined
  #links = 0

  constructor(root: Root, access: FolderAccess, parts: readonly string[]) {
    this.#root = root
    this.#access = access
    this.#asked = quoted(pathText(parts))
    this.#left = parts
  }

  async close(): Promise<void> {
    await this.#folder?.close()
    this.#folder = undefined
  }

  async toPlace(lookup: Lookup): Promise<Place> {
    for (let steps = 0; steps < maxSteps; steps++) {
      const folder = (this.#folder ??= await this.#access.openRoot())
      const [name, ...left] = this.#left
      if (name === undefined) return { folder, path: folder.path, stats: await lstat(folder.at('.')) }
      if (name === '..') await this.#up(folder, left)
      else {
        const found = await this.#entry(folder, name, left, lookup)
        if (found !== undefined) return found
      }
    }
    throw new ToolError(`${this.#asked} has too many names on its way.`)
  }

  /** Starts again at the root, with names that lead to the folder above. */
  async #up(folder: Folder, left: readonly string[]): Promise<void> {
    if (folder.path.length === 0) throw this.#outside()
    await this.#restart([...folder.path.slice(0, -1), ...left])
  }

  async #restart(left: readonly string[]): Promise<void> {
    await this.close()
    this.#left = left
  }

  async #entry(
    folder: Folder,
    name: string,
    left: readonly string[],
    { toMake = false }: Lookup,
  ): Promise<Place | undefined> {
    const path = [...folder.path, name]
    this.#assertShown(path, false)
    const stats = await statsOf(folder.at(name))
    if (stats === undefined) {
      if (!toMake || left.includes('..')) throw await this.#missing(folder, name)
      if (left.length === 0) return { folder, name, path }
      this.#assertShown(path, true)
      await madeFolder(folder.at(name))
      return undefined
    }
    if (stats.isSymbolicLink()) {
      await this.#follow(folder, name, left)
      return undefined
    }
    if (stats.isDirectory()) {
      this.#assertShown(path, true)
      this.#folder = await this.#access.enter(folder, name)
      await folder.close()
      this.#left = left
      return undefined
    }
    if (left.length > 0)
      throw new ToolError(`${quoted(pathText(path))} is no folder, so ${this.#asked} does not exist.`)
    return { folder, name, path, stats }
  }

  async #follow(folder: Folder, name: string, left: readonly string[]): Promise<void> {
    if (++this.#links > maxLinks) throw new ToolError(`${this.#asked} passes through too many links.`)
    const target = await readlink(folder.at(name))
    const names = (text: string): readonly string[] =>
      text.split(sep === '/' ? '/' : /[/\\]/).filter((part) => part !== '' && part !== '.')
    if (!isAbsolute(target)) {
      this.#left = [...names(target), ...left]
      return
    }
    const [top, end] = await Promise.all([realpath(this.#access.root), realpath(target).catch(() => target)])
    const inside = relative(top, end)
    if (inside.split(sep).includes('..') || isAbsolute(inside)) throw this.#outside()
    await this.#restart([...names(inside), ...left])
  }

  #outside(): ToolError {
    return new ToolError(`${this.#asked} leads outside the root folder. Only what is inside it can be used.`)
  }

  #assertShown(path: readonly string[], isFolder: boolean): void {
    const why = this.#root.shown.unshown(path, isFolder)
    if (why === undefined) return
    throw new ToolError(`${quoted(pathText(path))} is ${why}: this tool neither shows nor changes it.`)
  }

  async #missing(folder: Folder, name: string): Promise<ToolError> {
    const path = [...folder.path, name]
    const near = nearestNames(name, await this.#namesIn(folder), 3)
    const hint =
      near.length === 0
        ? ''
        : ` Did you mean ${near.map((each) => quoted(pathText([...folder.path, each]))).join(' or ')}?`
    return new ToolError(`${quoted(pathText(path))} does not exist.${hint}`)
  }

  /** Some names of a folder that tools show. */
  async #namesIn(folder: Folder): Promise<readonly string[]> {
    const names: string[] = []
    for await (const entry of await opendir(folder.at('.'))) {
      const isShown =
        this.#root.shown.unshown([...folder.path, entry.name], entry.isDirectory()) === undefined
      if (isShown && isUsableName(entry.name)) names.push(entry.name)
      if (names.length >= maxSteps) break
    }
    return names.sort()
  }
}

/** What has a name, links not followed; `undefined` where nothing has it. */
export async function statsOf(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

async function madeFolder(path: string): Promise<void> {
  try {
    await mkdir(path)
  } catch (error) {
    // Another call made it meanwhile, or something else, which the next look finds.
    if (codeOf(error) !== 'EEXIST') throw error
  }
}
