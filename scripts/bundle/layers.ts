// Which modules of a package share a file. What the same entries need shares one, unless a package is named here: each file
// takes half a millisecond to find, and what is loaded without need as long for each 30 KB.
import { join } from 'node:path'
import { rolldown, type InputOptions } from 'rolldown'

/**
 * By package, files and the modules of its sources that they are made for, those that need no other first. Each holds these
 * modules, or all of a folder, with what they import and no file before it holds, so that files import only those before them.
 */
const layers: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  // What tells errors apart; zod, which runs later; without it and RxJS; without RxJS; with it, what stores, tools and adapters
  // take; the runtime.
  '@tallystick/core': {
    errors: ['vocabulary/errors'],
    'layer-zod': ['vocabulary/zod/zod-parts'],
    'layer-machine': ['machine'],
    'layer-vocabulary': ['vocabulary'],
    'layer-kit': ['store-kit', 'kit'],
    'layer-runtime': ['index'],
  },
  // What --version needs; what every verb needs; what verbs need that read a ledger.
  '@tallystick/cli': {
    'layer-version': ['own-version'],
    'layer-program': ['program'],
    'layer-verbs': ['verbs/inspect/list', 'verbs/inspect/show'],
  },
  // What every tool needs; what every adapter needs.
  '@tallystick/tools': { 'layer-tools': ['index'] },
  '@tallystick/providers': { 'layer-shared': ['shared/'] },
}

/** The file that each module is in, where it is in one of these. `sources` is the folder of the modules. */
export async function layersOf(
  packageName: string,
  sources: string,
  options: InputOptions,
): Promise<ReadonlyMap<string, string>> {
  const layerOf = new Map<string, string>()
  const ownLayers = Object.entries(layers[packageName] ?? {})
  if (ownLayers.length === 0) return layerOf
  const imported = await importsOf(options)
  for (const [layer, names] of ownLayers) {
    const paths = names.flatMap((name) =>
      name.endsWith('/')
        ? [...imported.keys()].filter((path) => path.startsWith(join(sources, name)))
        : join(sources, `${name}.ts`),
    )
    for (const path of paths) {
      const imports = imported.get(path)
      if (imports === undefined) throw new Error(`${packageName} has no module ${path}.`)
      if (layerOf.has(path)) continue
      layerOf.set(path, layer)
      paths.push(...imports)
    }
  }
  return layerOf
}

/** The modules that each module imports for what is left of it. What it imports later is not among them. */
async function importsOf(options: InputOptions): Promise<ReadonlyMap<string, readonly string[]>> {
  const bundling = await rolldown(options)
  try {
    const { output } = await bundling.generate({ format: 'esm', preserveModules: true })
    const files = output.flatMap((file) => {
      const path = file.type === 'chunk' ? (file.facadeModuleId ?? file.moduleIds[0]) : undefined
      return file.type === 'chunk' && path !== undefined ? [{ ...file, path }] : []
    })
    const pathOf = new Map(files.map(({ fileName, path }) => [fileName, path]))
    return new Map(
      files.map(({ path, imports }) => [path, imports.flatMap((name) => pathOf.get(name) ?? [])]),
    )
  } finally {
    await bundling.close()
  }
}
