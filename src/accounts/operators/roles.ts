/** What operators may be, from the one who only looks to the one who decides who may sign in. */
export const OPERATOR_ROLES = ["viewer", "operator", "data", "admin"] as const;
export type OperatorRole = (typeof OPERATOR_ROLES)[number];

/** Whether a role approves the work of others. */
function mayApprove(role: OperatorRole): boolean {
  return role === "operator" || role === "admin";
}

/** Whether another role gives an operator approvals that the one before did not. */
export function givesApprovals({ role, before }: { role: OperatorRole; before: OperatorRole }): boolean {
  return mayApprove(role) && !mayApprove(before);
}
