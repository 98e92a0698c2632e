// Loaded before a program by `--import`, with the folder of `bundled-sources.ts` as its query: what the program imports of the
// packages and libraries that are laid together there, comes from there.
import { readFileSync } from 'node:fs'
import { createRequire, registerHooks } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { BundleTable } from './bundle-sources.ts'

const folder = new URL(import.meta.url).searchParams.get('folder') ?? ''
const packages = new URL('../../../packages/', import.meta.url).href
const table = new Map(
  // Written by `bundledSources`.
  Object.entries(JSON.parse(readFileSync(fileURLToPath(`${folder}table.json`), 'utf8')) as BundleTable),
)

registerHooks({
  resolve(specifier, context, next) {
    const { parentURL = '' } = context
    const isOfFolder = parentURL.startsWith(folder)
    if (isOfFolder && specifier.startsWith('.')) {
      return { url: new URL(specifier, parentURL).href, format: 'module', shortCircuit: true }
    }
    // What a package depends on is beside the package, and not beside this folder.
    const [name = ''] = parentURL.slice(folder.length).split('/')
    const from = isOfFolder ? `${packages}${name}/package.json` : context.parentURL
    // A resolver of CommonJS goes by the module that asks, whatever parent it is told.
    if (isOfFolder && context.conditions.includes('require') && from !== undefined) {
      const url = pathToFileURL(createRequire(from).resolve(specifier)).href
      return { url, format: 'commonjs', shortCircuit: true }
    }
    const found = next(specifier, { ...context, parentURL: from })
    const file = context.conditions.includes('import') ? table.get(found.url) : undefined
    return file === undefined ? found : { url: folder + file, format: 'module', shortCircuit: true }
  },
})
