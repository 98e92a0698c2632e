import { isStorableName } from '@tallystick/core/store-kit'

/** Whether Postgres can hold a text as it is: it knows no NUL, and half a surrogate pair would become another text. */
export const isStorable: (text: string) => boolean = isStorableName
