import type * as client from '@modelcontextprotocol/client'
import { type OptionalPackage, optionalPackage } from '../../built-in/optional-package.ts'

/** The official client of the protocol. */
export const mcpPackage: OptionalPackage<typeof client> = optionalPackage(
  '@modelcontextprotocol/client',
  () => import('@modelcontextprotocol/client'),
)
