/** Path of the security page. */
export const SECURITY = "/console/security";
