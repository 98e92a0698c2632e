import { ConfigurationError } from '@tallystick/core'
import { cleanLine } from '../text/clean-text.ts'

/** Where something is wrong: in which file, and at which of its servers. */
export interface ConfigPlace {
  readonly file: string
  readonly server?: string
}

/** An error that names the file, the server and the fault, and never a value: that may be a key. */
export function configError({ file, server }: ConfigPlace, what: string): ConfigurationError {
  const where = server === undefined ? '' : ` The MCP server ${JSON.stringify(cleanLine(server, 64))}:`
  return new ConfigurationError(`${cleanLine(file, 500)}:${where} ${what}`)
}
