import type * as node from '@modelcontextprotocol/node'
import type * as server from '@modelcontextprotocol/server'
import { type OptionalPackage, optionalPackage } from '../../built-in/optional-package.ts'

/** The official server of the protocol. */
export const serverPackage: OptionalPackage<typeof server> = optionalPackage(
  '@modelcontextprotocol/server',
  () => import('@modelcontextprotocol/server'),
)

/** Its connection to the HTTP servers of Node. */
export const nodePackage: OptionalPackage<typeof node> = optionalPackage(
  '@modelcontextprotocol/node',
  () => import('@modelcontextprotocol/node'),
)
