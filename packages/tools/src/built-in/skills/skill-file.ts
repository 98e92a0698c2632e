import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { ConfigurationError } from '@tallystick/core'
import { parse, YAMLParseError } from 'yaml'
import { visibleText } from '../../content/visible-text.ts'

/** What the head of a `SKILL.md` says of its skill. */
export interface SkillHead {
  readonly name: string
  /** What the skill does, and when to use it: one line. */
  readonly description: string
}

const maxHeadBytes = 64 * 1024
const maxName = 64
const maxDescription = 1_024
const fence = /^---[ \t]*\r?\n/

/** Reads the head of a `SKILL.md`, as the Agent Skills format has it. Throws `ConfigurationError`. */
export function readSkillHead(path: string, folderName: string): SkillHead {
  const head = parsedHead(path, beginningOf(path))
  const { name, description } = head
  if (typeof name !== 'string' || name.length > maxName || !/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name)) {
    throw wrong(
      path,
      `its name has to be up to ${maxName} small letters, digits and single hyphens, as in pdf-forms`,
    )
  }
  if (name !== folderName) {
    throw wrong(
      path,
      `its name is ${name}, and its folder is called ${JSON.stringify(folderName)}. Call both the same`,
    )
  }
  const text = typeof description === 'string' ? visibleText(description).replaceAll(/\s+/g, ' ').trim() : ''
  if (text === '' || text.length > maxDescription) {
    throw wrong(
      path,
      `its description has to be a text of 1 to ${maxDescription} characters that says what the skill does and when to use it`,
    )
  }
  return { name, description: text }
}

/** Returns the text of a `SKILL.md` after its head. */
export function skillBody(text: string): string {
  return text.slice(headOf(text)?.end ?? 0).trim()
}

/** The YAML between the two lines of hyphens, and where the body begins. */
function headOf(text: string): { readonly yaml: string; readonly end: number } | undefined {
  const start = fence.exec(text)?.[0].length
  if (start === undefined) return undefined
  const close = /(?:^|\n)---[ \t]*(?:\r?\n|$)/.exec(text.slice(start))
  if (close === null) return undefined
  return { yaml: text.slice(start, start + close.index), end: start + close.index + close[0].length }
}

function parsedHead(path: string, text: string): Readonly<Record<string, unknown>> {
  const head = headOf(text)
  if (head === undefined) {
    throw wrong(path, `it does not begin with a head between two lines of --- within ${maxHeadBytes} bytes`)
  }
  try {
    const parsed: unknown = parse(head.yaml, { maxAliasCount: 0 })
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) {
      return parsed as Record<string, unknown>
    }
  } catch (error) {
    const line = error instanceof YAMLParseError ? error.message.split('\n')[0] : String(error)
    throw wrong(path, `its head is no YAML: ${line}`)
  }
  throw wrong(path, 'its head has to hold name: and description:')
}

/** The beginning of a file, which is long enough for a head. */
function beginningOf(path: string): string {
  let file: number | undefined
  try {
    file = openSync(path, 'r')
    if (!fstatSync(file).isFile()) throw wrong(path, 'it is no file')
    const bytes = Buffer.alloc(maxHeadBytes)
    const length = readSync(file, bytes)
    return bytes.toString('utf8', 0, length).replace(/^\ufeff/, '')
  } catch (error) {
    if (error instanceof ConfigurationError) throw error
    throw wrong(path, `it cannot be read (${String(error)})`)
  } finally {
    if (file !== undefined) closeSync(file)
  }
}

function wrong(path: string, what: string): ConfigurationError {
  return new ConfigurationError(`skills: ${path} is no skill: ${what}.`)
}
