import { createRequire } from 'node:module'
import { ConfigurationError } from '@tallystick/core'

/** Refuses a tool whose optional package is not installed, when the tool is made, and names the line that installs it. */
export function requirePackage(toolName: string, name: string): void {
  const require = createRequire(import.meta.url)
  try {
    require.resolve(name)
  } catch (error) {
    throw new ConfigurationError(
      `The tool ${toolName} needs the package ${name}, which is not installed. Add it: npm install ${name}.`,
      { cause: error },
    )
  }
}
