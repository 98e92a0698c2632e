import type { Case } from './case.ts'

/** The files of cases that are not named as their case. */
const files: Readonly<Record<string, string>> = { persistence: 'depth', verify: 'fold' }

/** Loads the case of a name, and nothing else: what other cases need would count as memory of this one. */
export async function caseNamed(name: string): Promise<Case> {
  const url = new URL(`${files[name] ?? name}.ts`, import.meta.url)
  const module = (await import(url.href)) as Readonly<Record<string, Case>>
  const found = Object.values(module).find((each) => each.name === name)
  if (found === undefined) throw new Error(`${url.pathname} has no case ${name}.`)
  return found
}
