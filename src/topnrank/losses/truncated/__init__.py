"""MRR, MAP and AUC, smoothed and cut at N."""
