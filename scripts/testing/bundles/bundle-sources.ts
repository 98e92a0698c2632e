import { rolldown } from 'rolldown'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** What is laid together: the modules of packages, and libraries, each by how its users import it. */
export interface Bundled {
  /** The folder with the packages. */
  readonly root: string
  /** Paths of source files, from the root. */
  readonly sources: readonly string[]
  /** The package that each library is a dependency of, by how the library is imported. */
  readonly libraries: Readonly<Record<string, string>>
}

/** The file of each module that is laid together with others, below the output folder, by the URL that Node resolves it to. */
export type BundleTable = Readonly<Record<string, string>>

/** Begins the name of a module that exports what a library does. */
const libraryEntry = 'library:'

/** Where a source file goes: its path without `packages/` and the ending. */
const nameOf = (path: string): string => path.replace(/^packages\//, '').replace(/\.ts$/, '')

const libraryNameOf = (library: string): string => `libraries/${library.replace(/\.js$/, '')}`

/** The package, and the folder right below its sources, that a module is in. */
const layerOf = (path: string): string | undefined =>
  /\/packages\/(\w+\/src\/[\w-]+)\//.exec(path)?.[1]?.replace('/src/', '/layers/')

/** The library that a file is a part of. */
const libraryOf = (path: string): string | undefined =>
  /\/node_modules\/((?:@[\w-]+\/)?[\w-]+)\/(?!.*\/node_modules\/)/.exec(path)?.[1]

/**
 * Lays modules together into one file for each folder below the sources of a package, and for each library. Each module
 * has a file of its own besides, which exports what the module does: whichever of them a program imports, it gets the same
 * classes and values.
 */
export async function bundleSources(
  { root, sources, libraries }: Bundled,
  output: string,
): Promise<BundleTable> {
  /** The file that an import of each library leads to, which need not be the one that `require` finds. */
  const files = new Map<string, string>()
  const bundling = await rolldown({
    cwd: root,
    input: Object.fromEntries([
      ...sources.map((path) => [nameOf(path), join(root, path)]),
      ...Object.keys(libraries).map((library) => [libraryNameOf(library), `${libraryEntry}${library}`]),
    ]),
    platform: 'node',
    treeshake: false,
    preserveEntrySignatures: 'allow-extension',
    external: (id) => !/^([./]|library:)/.test(id) && !(id in libraries),
    plugins: [
      {
        name: 'libraries',
        async resolveId(id, importer) {
          if (!id.startsWith(libraryEntry)) {
            return importer?.startsWith(libraryEntry) ? files.get(id) : undefined
          }
          const library = id.slice(libraryEntry.length)
          const found = await this.resolve(library, join(root, libraries[library] ?? '', 'package.json'))
          if (found) files.set(library, found.id)
          return id
        },
        async load(id) {
          if (!id.startsWith(libraryEntry)) return undefined
          const library = id.slice(libraryEntry.length)
          // Some libraries are CommonJS: Node alone tells the names that they export, and gives them a default of its own.
          const exported: object = await import(pathToFileURL(files.get(library) ?? '').href)
          const isCommonJs = 'module.exports' in exported
          const names = Object.keys(exported).filter(
            (name) => /^[a-z]\w*$/i.test(name) && !(isCommonJs && name === 'default'),
          )
          return `export { ${names.join(', ')} } from ${JSON.stringify(library)}`
        },
      },
    ],
  })
  try {
    await bundling.write({
      dir: output,
      format: 'esm',
      sourcemap: true,
      sourcemapExcludeSources: true,
      chunkFileNames: '[name].js',
      codeSplitting: {
        includeDependenciesRecursively: false,
        groups: [
          {
            debugName: 'layers',
            name: (path: string) => {
              const library = libraryOf(path)
              return library === undefined ? (layerOf(path) ?? null) : `libraries/layers/${library}`
            },
          },
        ],
      },
    })
  } finally {
    await bundling.close()
  }
  return Object.fromEntries([
    ...sources.map((path) => [pathToFileURL(join(root, path)).href, `${nameOf(path)}.js`]),
    ...[...files].map(([library, file]) => [pathToFileURL(file).href, `${libraryNameOf(library)}.js`]),
  ])
}
