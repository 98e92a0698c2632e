import type { ChildProcess } from 'node:child_process'
import { type FSWatcher, statSync, watch } from 'node:fs'
import * as nodeModule from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ConfigurationError } from '@tallystick/core'
import { type Observable, ReplaySubject } from 'rxjs'

/** A file that a process loads, and which content was there before it did. */
interface LoadedFile {
  readonly path: string
  readonly version: string
}

/**
 * Tells the parent of this process, by its channel, of each file that is imported or required from here on. Files of installed
 * packages are left out.
 */
export function reportLoadedFiles(): void {
  // Node 22.14, and hosts that are not Node, have no such hooks.
  if (typeof nodeModule.registerHooks !== 'function')
    throw new ConfigurationError(
      'dev learns from Node which files a configuration imports, and this Node cannot tell. Use Node 22.15 or newer.',
    )
  nodeModule.registerHooks({
    load(url, context, nextLoad) {
      if (url.startsWith('file:') && !url.includes('/node_modules/') && process.connected) {
        const path = fileURLToPath(url)
        process.send?.({ path, version: readVersion(path) } satisfies LoadedFile)
      }
      return nextLoad(url, context)
    },
  })
}

/**
 * The files that processes have loaded, and whether one has changed since. It watches their folders: editors and git put a new
 * file in the place of the old one, and a watch of a file stays with the old one.
 */
export class LoadedFiles implements Disposable {
  /** By path. */
  readonly #versions: Map<string, string>
  readonly #watchers = new Map<string, FSWatcher>()
  readonly #changed$ = new ReplaySubject<string>(1)

  /** Listens to a process that reports what it loads. Files that one before it has loaded count, too: it may have failed early. */
  constructor(child: ChildProcess, before?: LoadedFiles) {
    const paths = before === undefined ? [] : [...before.#versions.keys()]
    this.#versions = new Map(paths.map((path) => [path, readVersion(path)]))
    for (const path of this.#versions.keys()) this.#watch(path)
    child.on('message', (file) => {
      const { path, version } = file as LoadedFile
      this.#versions.set(path, version)
      this.#watch(path)
      // It may have changed before it was watched.
      this.#look(path)
    })
  }

  /** Emits the path of each file that is no longer as it was loaded; the last one also to who subscribes later. */
  get changed$(): Observable<string> {
    return this.#changed$
  }

  [Symbol.dispose](): void {
    for (const watcher of this.#watchers.values()) watcher.close()
  }

  #watch(path: string): void {
    const folder = dirname(path)
    if (this.#watchers.has(folder)) return
    try {
      const watcher = watch(folder, (_event, name) => {
        if (name !== null) this.#look(join(folder, name))
      })
      // A folder that is removed ends its watch.
      this.#watchers.set(
        folder,
        watcher.on('error', () => {}),
      )
    } catch {
      // The folder is gone, and with it what the next process would load from it.
    }
  }

  #look(path: string): void {
    const version = this.#versions.get(path)
    if (version !== undefined && version !== readVersion(path)) this.#changed$.next(path)
  }
}

/** Changes whenever a file is written or replaced. */
function readVersion(path: string): string {
  const { ino, mtimeMs, size } = statSync(path, { throwIfNoEntry: false }) ?? {}
  return `${ino} ${mtimeMs} ${size}`
}
