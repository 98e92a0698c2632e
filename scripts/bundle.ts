// Puts the modules of a package together into few files, in `lib`: Node loads one large file in a tenth of the time that it
// takes for two hundred small ones. Writes the declarations, too. Runs in the folder of the package, before it is packed. The files are not minified, and
// their source maps name the sources, which are published as well. Dependencies stay outside, or are laid in:
// `bundle/dependencies.ts` says which, and `lib/LICENCES.txt` holds the licences of the latter.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { rolldown, type InputOptions } from 'rolldown'
import { writeDeclarations } from './bundle/declarations.ts'
import { dependencies, isLaidIn, licencesOf } from './bundle/dependencies.ts'
import { layersOf } from './bundle/layers.ts'
import { modulesOfNode } from './bundle/modules-of-node.ts'
import { runLater } from './bundle/run-later.ts'

interface Manifest {
  readonly name: string
  readonly bin?: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, string>>
  readonly publishConfig: {
    readonly bin?: Readonly<Record<string, string>>
    readonly exports: Readonly<Record<string, string | { readonly default: string }>>
  }
}

/** Where the files go, below the folder of the package. */
const output = 'lib'

/** Modules, by where they are below `src`, that are started as processes of their own. */
const processes = ['built-in/sql-query/sqlite/statement-process']

/** Modules that look at their own path, or for a file beside them: each stays a file of its own, at that path. */
const placed: ReadonlySet<string> = new Set([
  'built-in/optional-package',
  'built-in/sql-query/sqlite/own-process',
  'postgres/connections',
  'shared/client/optional-package',
])

/** The source of each entry, by the name of the file that is published for it. */
function entriesOf(home: string, manifest: Manifest): Readonly<Record<string, string>> {
  const { exports, bin = {}, publishConfig } = manifest
  const published = Object.entries(publishConfig.exports).flatMap(([subpath, target]) =>
    typeof target === 'string' ? [] : [[target.default, exports[subpath]] as const],
  )
  const commands = Object.entries(publishConfig.bin ?? {}).map(([name, file]) => [file, bin[name]] as const)
  const named = [...published, ...commands].map(([file, source]) => {
    const name = relative(output, file).replace(/\.js$/, '')
    if (source === undefined || name.startsWith('..')) throw new Error(`${file} has no source.`)
    return [name, source] as const
  })
  const started = processes
    .map((name) => [name, join(home, 'src', `${name}.ts`)] as const)
    .filter(([, source]) => existsSync(source))
  return Object.fromEntries([...named, ...started])
}

/** The name of the file that holds this module alone with what it needs, if it has to have one. */
function placeOf(path: string, sources: string): string | null {
  const name = relative(sources, path).replace(/\.ts$/, '')
  return placed.has(name) ? name : null
}

async function bundle(home: string): Promise<readonly string[]> {
  const manifest = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8')) as Manifest
  const sources = join(home, 'src')
  const options = {
    cwd: home,
    input: entriesOf(home, manifest),
    plugins: [
      runLater(manifest.name, sources),
      modulesOfNode(manifest.name, sources),
      await dependencies(home),
    ],
    checks: { bundlerTimings: false },
    // What a file has of Node is what its sources import.
    platform: 'neutral' as const,
    // A dependency that is laid in loses the parts that nothing uses.
    treeshake: { moduleSideEffects: (path) => !isLaidIn(path) },
    preserveEntrySignatures: 'strict' as const,
    onLog: (level, log) => {
      if (level !== 'info' && level !== 'debug') throw new Error(log.message)
    },
  } satisfies InputOptions
  const layerOf = await layersOf(manifest.name, sources, options)
  const bundling = await rolldown(options)
  try {
    const { output: files } = await bundling.write({
      dir: join(home, output),
      cleanDir: true,
      format: 'esm',
      sourcemap: true,
      sourcemapExcludeSources: true,
      chunkFileNames: '[name].js',
      // Editors read comments in the declarations, and bundlers of users read the annotations here.
      comments: { legal: true, annotation: true, jsdoc: false },
      codeSplitting: {
        groups: [
          { debugName: 'placed', name: (path: string) => placeOf(path, sources) },
          // In their order, each takes what those before it left.
          ...[...new Set(layerOf.values())].map((name) => ({
            name,
            test: (path: string) => layerOf.get(path) === name,
          })),
        ],
      },
    })
    const chunks = files.filter((file) => file.type === 'chunk')
    const modules = chunks.flatMap((chunk) => Object.entries(chunk.modules))
    const licences = licencesOf(
      modules.flatMap(([path, { renderedLength }]) => (renderedLength > 0 ? path : [])),
    )
    if (licences !== '') writeFileSync(join(home, output, 'LICENCES.txt'), licences)
    return chunks.map(({ fileName }) => fileName)
  } finally {
    await bundling.close()
  }
}

const home = process.cwd()
writeDeclarations(home)
const files = await bundle(home)
console.log(`${basename(home)}: ${files.length} files in ${output}`)
