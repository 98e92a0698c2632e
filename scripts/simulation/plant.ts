// Loaded before everything else: plants the fault that TALLYSTICK_PLANTED names into the sources, as they are loaded.
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { plantedFaults } from './planted.ts'

const name = process.env['TALLYSTICK_PLANTED'] ?? ''
const changes = plantedFaults[name]
if (changes === undefined) throw new Error(`No planted fault is called ${name}.`)

const packages = new URL('../../packages/', import.meta.url).href

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context)
    const mine = changes.filter(({ file }) => url === packages + file)
    if (mine.length === 0) return loaded
    let source = readFileSync(new URL(url), 'utf8')
    for (const { file, from, to } of mine) {
      if (source.split(from).length !== 2) throw new Error(`${file} does not hold once: ${from}`)
      source = source.replace(from, () => to)
    }
    return { ...loaded, source }
  },
})
