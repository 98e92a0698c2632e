// Runs the benchmark of a package: `pnpm bench:package providers`, and whatever else it takes after its name.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

const packages = join(import.meta.dirname, '../packages')
const toScriptPath = (name: string): string => join(packages, name, 'bench/main.ts')
const known = readdirSync(packages).filter((name) => existsSync(toScriptPath(name)))
const [name = '', ...rest] = process.argv.slice(2)
if (known.includes(name)) {
  process.exitCode =
    spawnSync(process.execPath, [toScriptPath(name), ...rest], { stdio: 'inherit' }).status ?? 1
} else {
  console.error(`Which benchmark? One of: ${known.join(', ')}.`)
  process.exitCode = 2
}
