/** What operators may be, from the one who only looks to the one who decides who may sign in. */
export const OPERATOR_ROLES = ["viewer", "operator", "data", "admin"] as const;
export type OperatorRole = (typeof OPERATOR_ROLES)[number];
