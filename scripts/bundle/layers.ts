// Which modules of a package share a file. What the same entries need shares one, unless a package is named here: each file
// takes half a millisecond to find, and what is loaded without need as long for each 30 KB.
import { rolldown, type InputOptions } from 'rolldown'

/**
 * By package, the files that its entries load, those that need no other first. Each holds the modules that its entries need
 * and that no file before it holds, so that files import only those before them.
 */
const layers: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  // Without zod and RxJS; what stores, tools and adapters take; the runtime.
  '@tallystick/core': {
    'layer-machine': ['machine'],
    'layer-vocabulary': ['vocabulary', 'store-kit', 'kit'],
    'layer-runtime': ['index'],
  },
}

/** The file that each module is in, where it is in one of these. */
export async function layersOf(
  packageName: string,
  options: InputOptions,
): Promise<ReadonlyMap<string, string>> {
  const layerOf = new Map<string, string>()
  const ownLayers = Object.entries(layers[packageName] ?? {})
  if (ownLayers.length === 0) return layerOf
  const { entries, neededBy } = await modulesOf(options)
  for (const [layer, names] of ownLayers) {
    const found = names.map((name) => {
      const path = entries.get(name)
      if (path === undefined) throw new Error(`${packageName} has no entry ${name}.`)
      return path
    })
    for (const path of found) {
      if (layerOf.has(path)) continue
      layerOf.set(path, layer)
      found.push(...(neededBy.get(path) ?? []))
    }
  }
  return layerOf
}

interface Modules {
  /** The module of each entry, by the name of the entry. */
  readonly entries: ReadonlyMap<string, string>
  /** The modules that each module imports for what is left of it. */
  readonly neededBy: ReadonlyMap<string, readonly string[]>
}

async function modulesOf(options: InputOptions): Promise<Modules> {
  const bundling = await rolldown(options)
  try {
    const { output } = await bundling.generate({ format: 'esm', preserveModules: true })
    const files = output.filter((file) => file.type === 'chunk')
    const pathOf = new Map(
      files.map((file) => [file.fileName, file.facadeModuleId ?? file.moduleIds[0] ?? '']),
    )
    return {
      entries: new Map(
        files.flatMap((file) => (file.isEntry ? [[file.name, pathOf.get(file.fileName) ?? '']] : [])),
      ),
      neededBy: new Map(
        files.map(({ fileName, imports }) => [
          pathOf.get(fileName) ?? '',
          imports.flatMap((name) => pathOf.get(name) ?? []),
        ]),
      ),
    }
  } finally {
    await bundling.close()
  }
}
