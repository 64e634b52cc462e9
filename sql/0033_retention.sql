-- Rolling calibrations are thinned out: for each that goes it is asked whether another was promoted from it, or compared
-- with it, and without these that reads all of them.
create index calibrations_promoted_from on calibrations (promoted_from) where promoted_from is not null;
create index comparisons_by_newer on calibration_comparisons (b_id);
